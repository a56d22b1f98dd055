// The tabs of the panel, and which of its parts is shown.

import { h } from "./dom";

export type Tab = "events" | "queries" | "health";

const TABS = ["events", "queries", "health"] as const;

export class PanelTabs {
  readonly element: HTMLElement;
  shown: Tab = "events";
  private readonly buttons: HTMLButtonElement[];

  /** Calls `chosen` when somebody chooses a tab; it is for `chosen` to show it. */
  constructor(
    private readonly panels: Record<Tab, HTMLElement>,
    private readonly chosen: (tab: Tab) => void,
  ) {
    this.buttons = TABS.map((name) => this.button(name));
    this.element = h("div", { class: "tabs", role: "tablist", "aria-label": "Panel" }, ...this.buttons);
    for (const name of TABS) {
      panels[name].id = `panel-${name}`;
      panels[name].setAttribute("role", "tabpanel");
      panels[name].setAttribute("aria-labelledby", `tab-${name}`);
    }
  }

  show(name: Tab): void {
    this.shown = name;
    for (const one of TABS) this.panels[one].hidden = one !== name;
    for (const button of this.buttons) {
      const isShown = button.id === `tab-${name}`;
      button.setAttribute("aria-selected", String(isShown));
      button.tabIndex = isShown ? 0 : -1;
    }
  }

  /** Hides all panels, for the form in their place. */
  hidePanels(): void {
    for (const name of TABS) this.panels[name].hidden = true;
  }

  private button(name: Tab): HTMLButtonElement {
    const label = `${name[0]?.toUpperCase()}${name.slice(1)}`;
    const button = h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}` }, label);
    button.addEventListener("click", () => this.chosen(name));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = this.buttons[(this.buttons.indexOf(button) + step + TABS.length) % TABS.length];
      next?.focus();
      next?.click();
    });
    return button;
  }
}
