"""`python -m tests.golden` records the program anew, unless bytes of a layout changed without a new FORMAT."""

import sys

from tests.golden.compare import refusal
from tests.golden.play import play
from tests.golden.recording import RECORDED, read_recording, write_recording


def main() -> int:
    """Write the record; return the exit code."""
    now = play()
    fault = refusal(read_recording(), now) if RECORDED.exists() else None
    if fault is not None:
        print(f"Nothing was recorded: {fault}", file=sys.stderr)
        return 1
    write_recording(now)
    print(f"Recorded {len(now.messages)} messages and {len(now.blobs)} binary parts in {RECORDED}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
