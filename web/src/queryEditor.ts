// The form of a definition. Its fields come from the JSON Schema of the kind; what is wrong, the service says.

import { putQuery } from "./connection";
import { h, replace, setText } from "./dom";
import { fieldOf } from "./errorField";
import { type FormField, fieldsOf, KINDS, MAIN, pretty, textOf, valueOf } from "./formFields";
import { asDefinition, type Fault, type Region } from "./protocol";
import { asRegion } from "./regionShape";
import type { Store } from "./store";

interface Row {
  element: HTMLElement;
  control: HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;
  error: HTMLElement;
}

export interface EditorActions {
  /** Shows the region of the form with its handles; null: none. */
  showRegion(region: Region | null, feed: string): void;
  closed(id: string | null): void;
  say(message: string, isFault?: boolean): void;
}

export class QueryEditor {
  readonly element: HTMLElement;
  private readonly fields = h("div", { class: "fields" });
  private readonly title = h("h2", { tabindex: "-1" });
  private readonly general = h("p", { class: "fault", role: "alert", hidden: true });
  private readonly kind: HTMLSelectElement;
  private readonly submit: HTMLButtonElement;
  private readonly id: Row;
  private rows = new Map<string, Row>();
  private specs: FormField[] = [];
  private before: Record<string, unknown> = {};

  constructor(
    private readonly store: Store,
    private readonly actions: EditorActions,
  ) {
    this.kind = h(
      "select",
      { id: "field-kind", onchange: () => this.rebuild({ ...this.lenient(), kind: this.kind.value }) },
      ...Object.keys(KINDS).map((name) => h("option", { value: name }, name)),
    );
    this.id = this.row("id", "Query id", h("input", { id: "field-id", required: true, autocomplete: "off", spellcheck: "false" }), "");
    this.submit = h("button", { type: "submit", class: "primary" }, "Put query");
    const form = h(
      "form",
      {
        class: "editor",
        novalidate: true,
        onsubmit: (event: Event) => {
          event.preventDefault();
          void this.put();
        },
      },
      this.title,
      this.id.element,
      this.row("kind", "Kind", this.kind, "").element,
      this.fields,
      this.general,
      h("div", { class: "actions" }, this.submit, h("button", { type: "button", onclick: () => this.close(null) }, "Cancel")),
    );
    this.element = h("section", { class: "panel-body", hidden: true, "aria-label": "Query" }, form);
  }

  open(id: string, definition: unknown, isNew: boolean): void {
    const control = this.id.control as HTMLInputElement;
    control.value = id;
    control.readOnly = !isNew;
    setText(this.title, isNew ? "New query" : `Edit ${id}`);
    setText(this.submit, isNew ? "Put query" : "Put new version");
    this.element.hidden = false;
    this.rebuild({ ...(asDefinition(definition) ?? { kind: "border", feed: this.store.feed }) });
    if (isNew) {
      control.focus();
      control.select();
    } else this.title.focus();
  }

  get isOpen(): boolean {
    return !this.element.hidden;
  }

  /** Puts a region that was drawn into the form, and shows its handles. */
  takeRegion(region: Region): void {
    this.setRegion(region);
    this.shareRegion();
  }

  /** Puts a region that was dragged into the form. */
  setRegion(region: Region): void {
    const row = this.rows.get("region");
    if (!row) return;
    row.control.value = pretty(region);
    this.showFault(null);
  }

  private close(id: string | null): void {
    this.element.hidden = true;
    this.actions.showRegion(null, "");
    this.actions.closed(id);
  }

  private rebuild(definition: Record<string, unknown>): void {
    this.kind.value = typeof definition["kind"] === "string" ? definition["kind"] : "border";
    this.specs = fieldsOf(this.kind.value);
    this.before = definition;
    this.rows = new Map();
    const main: HTMLElement[] = [];
    const more: HTMLElement[] = [];
    let usesMore = false;
    for (const spec of this.specs) {
      const row = this.fieldRow(spec, definition[spec.name]);
      this.rows.set(spec.name, row);
      const isMain = MAIN.includes(spec.name);
      (isMain ? main : more).push(row.element);
      usesMore ||= !isMain && (definition[spec.name] ?? null) !== null;
    }
    replace(this.fields, ...main, h("details", { open: usesMore }, h("summary", {}, "More options"), ...more));
    this.showFault(null);
    this.shareRegion();
  }

  private fieldRow(spec: FormField, value: unknown): Row {
    const id = `field-${spec.name}`;
    const isFeed = ["feed", "left", "right"].includes(spec.name) && spec.input === "text";
    const label = spec.name.replaceAll("_", " ");
    if (spec.input === "flag") {
      const control = h("input", { id, type: "checkbox" });
      control.checked = (value ?? spec.fallback) === true;
      return this.row(spec.name, label, control, spec.help);
    }
    if (spec.input === "choice" || isFeed) {
      const choices = isFeed ? Object.keys(this.store.setup?.feeds ?? {}) : spec.choices;
      const control = h("select", { id }, !spec.required && h("option", { value: "" }, "default"), ...choices.map((one) => h("option", { value: one }, one)));
      control.value = textOf(spec, value) || (spec.required ? (choices[0] ?? "") : "");
      control.addEventListener("change", () => this.shareRegion());
      return this.row(spec.name, label, control, spec.help);
    }
    if (spec.input === "json") {
      const control = h("textarea", { id, rows: spec.name === "region" ? 6 : 2, spellcheck: "false", placeholder: spec.name === "region" ? "Draw it, or write JSON" : "JSON" });
      control.value = textOf(spec, value);
      if (spec.name === "region") control.addEventListener("input", () => this.shareRegion());
      return this.row(spec.name, label, control, spec.help);
    }
    const control = h("input", { id, autocomplete: "off", spellcheck: "false", inputmode: spec.input === "number" ? "decimal" : null });
    control.value = textOf(spec, value);
    return this.row(spec.name, label, control, spec.help);
  }

  private row(name: string, label: string, control: Row["control"], help: string): Row {
    const error = h("p", { class: "fault", id: `error-${name}`, role: "alert", hidden: true });
    control.setAttribute("aria-describedby", `help-${name} error-${name}`);
    const element = h(
      "div",
      { class: "field" },
      h("label", { for: `field-${name}` }, label),
      control,
      h("p", { class: "help", id: `help-${name}` }, help),
      error,
    );
    return { element, control, error };
  }

  /** Returns the definition of the form, or the first field whose JSON cannot be read. */
  private read(): { definition: Record<string, unknown> } | { fault: Fault; field: string } {
    const definition: Record<string, unknown> = { kind: this.kind.value };
    for (const spec of this.specs) {
      const control = this.rows.get(spec.name)?.control;
      if (!control) continue;
      if (control instanceof HTMLInputElement && control.type === "checkbox") {
        if (control.checked !== (spec.fallback === true)) definition[spec.name] = control.checked;
        continue;
      }
      try {
        const value = valueOf(spec, control.value, this.before[spec.name]);
        if (value !== undefined) definition[spec.name] = value;
      } catch (error) {
        return { fault: { code: "not_json", message: `This is no JSON: ${(error as Error).message}` }, field: spec.name };
      }
    }
    return { definition };
  }

  /** Returns the definition, without the fields that cannot be read. */
  private lenient(): Record<string, unknown> {
    const read = this.read();
    return "definition" in read ? read.definition : { feed: this.rows.get("feed")?.control.value };
  }

  private shareRegion(): void {
    const text = this.rows.get("region")?.control.value ?? "";
    const feed = this.rows.get("feed")?.control.value ?? "";
    this.actions.showRegion(asRegion(parsed(text)), feed);
  }

  private async put(): Promise<void> {
    const id = this.id.control.value;
    const read = this.read();
    if ("fault" in read) return this.showFault(read.fault, read.field);
    this.submit.disabled = true;
    setText(this.general, "");
    const replied = await putQuery(id, read.definition);
    this.submit.disabled = false;
    if (!replied.ok) {
      this.showFault(replied.error ?? { code: replied.status, message: replied.status });
      return;
    }
    const degraded = replied.error ? `: ${replied.error.message}` : "";
    this.actions.say(`${id}: ${replied.status}, version ${replied.version ?? "–"}${degraded}`);
    this.close(id);
  }

  /** Shows an error at the field that it names, or below the form. */
  private showFault(fault: Fault | null, known = ""): void {
    const rows = new Map([...this.rows, ["id", this.id]]);
    for (const { error, control } of rows.values()) {
      error.hidden = true;
      control.removeAttribute("aria-invalid");
    }
    this.general.hidden = true;
    if (!fault) return;
    const row = rows.get(known || fieldOf(fault, [...rows.keys()]));
    const place = row?.error ?? this.general;
    setText(place, `${fault.code}: ${fault.message}`);
    place.hidden = false;
    if (!row) return;
    row.control.setAttribute("aria-invalid", "true");
    row.control.closest("details")?.setAttribute("open", "");
    row.control.focus();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
