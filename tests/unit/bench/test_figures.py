"""Every figure measures something, and its plot needs nothing but its file. The numbers mean nothing here."""

from pathlib import Path
from types import ModuleType

import pytest

from bench.figures.__main__ import all_figures, figure_modules
from bench.figures.figure import Figure, Scale, read, write
from bench.figures.plot import plot


@pytest.mark.parametrize("figure", all_figures(), ids=lambda figure: figure.name)
def test_a_figure_is_measured_written_and_plotted(figure: Figure, tmp_path: Path) -> None:
    points = list(figure.measure(Scale.SMOKE))

    path = write(figure, Scale.SMOKE, points, tmp_path)
    head, found = read(path)

    assert {point.panel for point in points} == {panel.name for panel in figure.panels}
    assert [(point.panel, point.series) for point in found] == [(point.panel, point.series) for point in points]
    for point, emitted in zip(points, found, strict=True):
        assert point.min <= point.median <= point.max
        assert emitted.x == (point.x if isinstance(point.x, str) else pytest.approx(point.x, rel=1e-5))
        assert [emitted.min, emitted.median, emitted.max] == pytest.approx(
            [point.min, point.median, point.max], rel=1e-5
        )
    assert head["claim"] == figure.claim
    assert head["commit"]
    assert head["machine"]
    assert plot(path).read_text().count("<svg ") == 1


@pytest.mark.parametrize("module", figure_modules(), ids=lambda module: module.FIGURE.name)
def test_a_figure_has_the_name_of_its_module(module: ModuleType) -> None:
    assert module.__name__.rpartition(".")[2] == module.FIGURE.name
