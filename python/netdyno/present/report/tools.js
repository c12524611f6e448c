"use strict";
/** The tools of a reader: filter, sort, link to what is seen, copy tables, save figures. */
const netdyno = (() => {
  const root = document.documentElement;
  const { contestantStyles, names, sheets } = JSON.parse(document.getElementById("all-figures").textContent);
  const kinds = Object.keys(names).filter((kind) => names[kind].length > 1);
  const leftOut = Object.fromEntries(Object.keys(names).map((kind) => [kind, new Set()]));
  const shows = (kind, name) => !leftOut[kind]?.has(name);
  const byId = (id) => document.getElementById(id);
  const made = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
  const say = (text) => { byId("said").textContent = text; };

  // --- what a cell says: its own words, without its mark and its notes; and its number

  const words = (cell) => [...cell.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("").trim();
  const kindOf = new Map(["level", "contestant", "run"].flatMap((kind) => names[kind].map((name) => [name, kind])));

  /** What a cell is sorted by: its number where the page has one, else its text; nothing where nothing is known. */
  const worth = (cell) => {
    if (cell?.dataset.number !== undefined) return Number(cell.dataset.number);
    const text = (cell?.textContent ?? "").trim();
    return /^[–-]?$/.test(text) ? null : text;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return 0;
    if (typeof a === typeof b && typeof a === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  /** Sort; unknown values stand last, either way round. */
  const sorted = (items, value, down) =>
    items.map((item) => [value(item), item])
      .sort(([a], [b]) => (a === null) - (b === null) || (down ? compare(b, a) : compare(a, b)))
      .map(([, item]) => item);

  // --- tables of the page

  const filtered = [...document.querySelectorAll("table:not(.heat, .environment)")];
  const tables = filtered.filter((table) => table.tHead);
  const orders = new Map();

  /** Rows change places among themselves only between headings within the table ("ranked apart"). */
  const arrange = (table) => {
    const order = orders.get(table);
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      if (order?.column === column) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    for (const body of table.tBodies) {
      body.original ??= [...body.rows];
      let rows = [];
      const place = () => {
        const value = (row) => worth(row.cells[order.column]);
        body.append(...(order ? sorted(rows, value, order.down) : rows));
        rows = [];
      };
      for (const row of body.original) {
        if (!row.classList.contains("apart")) { rows.push(row); continue; }
        place();
        body.append(row);
      }
      place();
    }
  };

  /** Up, down, as it was. */
  const turn = (order, column) => {
    if (order?.column !== column) return { column, down: false };
    return order.down ? undefined : { column, down: true };
  };

  const sortable = (heading, sort) => {
    const button = made("button", "", { type: "button", className: "by" });
    button.append(...heading.childNodes);
    button.addEventListener("click", sort);
    heading.append(button);
  };

  for (const table of tables) {
    if ([...table.tBodies].every((body) => body.rows.length < 2)) continue;
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      if (heading.tagName !== "TH" || heading.classList.contains("plot")) return;
      sortable(heading, () => {
        orders.set(table, turn(orders.get(table), column));
        arrange(table);
        remember();
      });
    });
  }

  const rows = filtered.flatMap((table) => [...table.tBodies].flatMap((body) => [...body.rows])).map((row) => [
    row, [...row.cells].map(words).filter((text) => kindOf.has(text)).map((text) => [kindOf.get(text), text]),
  ]);
  const others = [...document.querySelectorAll("[data-workload], [data-contestant], figure")].map((part) => {
    const caption = part.querySelector?.("figcaption")?.textContent ?? "";
    const level = caption.replace(/^At /, "");
    const about = Object.entries(part.dataset).filter(([kind]) => kind in names);
    if (part.tagName === "FIGURE" && kindOf.get(caption) === "contestant") about.push(["contestant", caption]);
    if (part.tagName === "FIGURE" && level !== caption && kindOf.get(level) === "level") about.push(["level", level]);
    return [part, about];
  });
  const parts = [...rows, ...others].filter(([, about]) => about.length);

  // --- every figure, as a table

  const sheet = { name: "", order: undefined, whole: false };
  const FIRST_ROWS = 200;
  const chosenRows = () => {
    const { columns, rows: all } = sheets[sheet.name];
    const kindsHere = columns.map((column, number) => [column, number]).filter(([column]) => column in names);
    const found = all.filter((row) => kindsHere.every(([kind, number]) => shows(kind, row[number])));
    return sheet.order ? sorted(found, (row) => row[sheet.order.column], sheet.order.down) : found;
  };
  const plain = (value) => (value === null ? "" : String(value));
  const fill = () => {
    const table = byId("all-table");
    byId("sheet").value = sheet.name;
    table.replaceChildren();
    byId("all").open = sheet.name !== "";
    if (!sheet.name) return;
    const { columns } = sheets[sheet.name];
    const found = chosenRows();
    const head = table.createTHead().insertRow();
    columns.forEach((column, number) => {
      const heading = made("th", column, { scope: "col" });
      if (sheet.order?.column === number) heading.setAttribute("aria-sort", sheet.order.down ? "descending" : "ascending");
      sortable(heading, () => {
        sheet.order = turn(sheet.order, number);
        fill();
        table.tHead.rows[0].cells[number].firstChild.focus();
        remember();
      });
      head.append(heading);
    });
    const body = table.createTBody();
    for (const row of sheet.whole ? found : found.slice(0, FIRST_ROWS)) body.insertRow().append(...row.map((value) => made("td", plain(value))));
    byId("all-count").textContent = `${body.rows.length} of ${found.length} rows`;
    byId("all-rest").hidden = body.rows.length === found.length;
  };

  /** A text that a spreadsheet would take for a formula has a space before it, as in an export. */
  const csvCell = (value) => {
    const text = typeof value === "string" && /^[=+@\t\r-]/.test(value) ? ` ${value}` : plain(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = () => [sheets[sheet.name].columns, ...chosenRows()].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

  const copy = async (text, what) => {
    try {
      await navigator.clipboard.writeText(text);
      say(`${what} copied`);
    } catch {
      const area = made("textarea", text, { className: "unseen" });
      document.body.append(area);
      area.select();
      say(document.execCommand("copy") ? `${what} copied` : `${what}: this browser copies nothing`);
      area.remove();
    }
  };

  // --- the state of the page, in its address

  let place = "";
  const NONE = "";
  const state = () => {
    const parameters = new URLSearchParams();
    for (const kind of kinds.filter((kind) => leftOut[kind].size)) {
      const seen = names[kind].filter((name) => shows(kind, name));
      (seen.length ? seen : [NONE]).forEach((name) => parameters.append(kind, name));
    }
    tables.forEach((table, number) => {
      const order = orders.get(table);
      if (order) parameters.append("sort", `${number}.${order.column}.${order.down ? "down" : "up"}`);
    });
    if (sheet.name) parameters.append("table", sheet.name);
    if (sheet.order) parameters.append("order", `${sheet.order.column}.${sheet.order.down ? "down" : "up"}`);
    if (!parameters.size) return place;
    if (place) parameters.append("at", place);
    return parameters.toString();
  };
  const remember = () => {
    const hash = state();
    if (hash === location.hash.slice(1)) return;
    try { history.replaceState(null, "", `#${hash}`); } catch { /* an address that cannot be changed says less */ }
  };
  const show = () => {
    for (const [part, about] of parts) part.hidden = !about.every(([kind, name]) => shows(kind, name));
    for (const [number, contestant, run] of contestantStyles) {
      const seen = shows("contestant", contestant) && shows("run", run);
      for (const letter of "kir") {
        if (seen) root.style.removeProperty(`--${letter}${number}`); else root.style.setProperty(`--${letter}${number}`, "transparent");
      }
    }
    for (const box of document.querySelectorAll("#choices input")) box.checked = shows(box.name, box.value);
    for (const turned of document.querySelectorAll("#choices button")) turned.textContent = leftOut[turned.name].size ? "all of these" : "none of these";
    const chosen = kinds.filter((kind) => leftOut[kind].size).map((kind) => `${names[kind].length - leftOut[kind].size} of ${names[kind].length} ${kind}s`);
    byId("filter").querySelector("summary").textContent = chosen.length ? `Filter: ${chosen.join(", ")}` : "Filter";
    fill();
    document.dispatchEvent(new Event("netdyno-filter"));
  };
  const restore = () => {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) {
      try { place = decodeURIComponent(hash); } catch { place = ""; /* it is no address of ours */ }
      remember();
      return;
    }
    const parameters = new URLSearchParams(hash);
    for (const kind of kinds) {
      const requested = parameters.getAll(kind);
      const seen = requested.filter((name) => names[kind].includes(name));
      leftOut[kind] = new Set(seen.length || requested.includes(NONE) ? names[kind].filter((name) => !seen.includes(name)) : []);
    }
    const orderOf = (text) => { const [column, way] = text.split("."); return { column: Number(column), down: way === "down" }; };
    orders.clear();
    for (const text of parameters.getAll("sort")) {
      const table = tables[Number(text.split(".")[0])];
      if (table) orders.set(table, orderOf(text.slice(text.indexOf(".") + 1)));
    }
    tables.forEach((table) => { if (orders.has(table) || table.querySelector("[aria-sort]")) arrange(table); });
    sheet.name = Object.hasOwn(sheets, parameters.get("table")) ? parameters.get("table") : "";
    sheet.order = sheet.name && parameters.has("order") ? orderOf(parameters.get("order")) : undefined;
    place = parameters.get("at") ?? "";
    show();
    byId(place)?.scrollIntoView();
  };

  // --- figures as files

  const headingOf = (part) => part.closest("section")?.querySelector("h2")?.firstChild.textContent.trim() ?? "";
  const SVG = "http://www.w3.org/2000/svg";
  const shape = (name, attributes, text = "") => {
    const element = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach((pair) => element.setAttribute(...pair));
    element.textContent = text;
    return element;
  };
  const LINE = 15;
  /** The figure as a file that stands alone: with its title, a legend, the styles that it has in the page, and its
   * colours as they are now. */
  const alone = (figure, title) => {
    const copied = figure.cloneNode(true);
    const [, , width, bottom] = figure.getAttribute("viewBox").split(" ").map(Number);
    const used = new Set([...copied.querySelectorAll("[class]")].flatMap((part) => [...part.classList]));
    const rules = [...document.styleSheets].flatMap((styles) => [...styles.cssRules]).filter((rule) => {
      const name = /^\.(st\d+)\.\1$|^\*$/.exec(rule.selectorText ?? "");
      return name && (!name[1] || used.has(name[1]));
    });
    copied.prepend(shape("style", {}, rules.map((rule) => rule.cssText).join("\n")));
    const drawn = new Set([...new XMLSerializer().serializeToString(copied).matchAll(/--k(\d+)/g)].map(([, number]) => Number(number)));
    const legend = contestantStyles.filter(([number, contestant, run]) => drawn.has(number) && shows("contestant", contestant) && shows("run", run));
    const height = bottom + (legend.length + 2) * LINE;
    const all = { viewBox: `0 ${-LINE - 4} ${width} ${height}`, width, height, "font-family": "sans-serif", "font-size": 11 };
    Object.entries(all).forEach((pair) => copied.setAttribute(...pair));
    copied.prepend(
      shape("rect", { y: -LINE - 4, width, height, style: "fill: var(--paper)" }),
      shape("text", { x: 4, y: -4, style: "fill: var(--ink); font-weight: bold" }, title),
    );
    legend.forEach(([number, contestant, run, path], line) => copied.append(
      shape("path", { d: path, transform: `translate(10 ${bottom + line * LINE + 8}) scale(0.7)`, style: `fill: var(--k${number})` }),
      shape("text", { x: 20, y: bottom + line * LINE + 12, style: "fill: var(--ink)" }, names.run.length > 1 ? `${contestant}, ${run}` : contestant),
    ));
    const computed = getComputedStyle(root);
    const value = (_, name, instead) => computed.getPropertyValue(name).trim() || computed.getPropertyValue(instead ?? "").trim();
    const text = new XMLSerializer().serializeToString(copied).replace(/var\((--[\w-]+)(?:,\s*var\((--[\w-]+)\))?\)/g, value);
    return { text, width, height };
  };
  const save = (blob, name) => {
    const link = made("a", "", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const savePng = async ({ text, width, height }, name) => {
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = made("canvas", "", { width: 3 * width, height: 3 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(blob, name));
  };
  /** A surface is a table: the same cells as a drawing. */
  const surface = (table) => {
    const whole = table.getBoundingClientRect();
    const drawing = shape("svg", { viewBox: `0 0 ${Math.ceil(whole.width)} ${Math.ceil(whole.height)}` });
    for (const cell of table.querySelectorAll("td, th")) {
      const { left, top, width, height } = cell.getBoundingClientRect();
      const [x, y, style] = [left - whole.left, top - whole.top, getComputedStyle(cell)];
      if (cell.tagName === "TD") drawing.append(shape("rect", { x, y, width, height, fill: style.backgroundColor }));
      const text = [...cell.childNodes].filter((node) => !node.classList?.contains("unseen")).map((node) => node.textContent).join(" ");
      const place = { x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle", "font-size": style.fontSize, fill: style.color };
      drawing.append(shape("text", place, text.trim()));
    }
    return drawing;
  };

  /** The lines of throughput over time as a drawing: the page has them on a canvas. */
  const lines = (plot) => {
    const [left, width, height] = [50, 450, 240];
    const drawing = shape("svg", { viewBox: `0 0 ${left + width} ${height + 34}` });
    const [{ min: first, max: last }, { max: top }] = [plot.scales.x, plot.scales.y];
    const point = (x, y) => `${(left + ((x - first) / (last - first)) * width).toFixed(1)},${(height * (1 - y / top)).toFixed(1)}`;
    const grey = "fill: var(--muted)";
    for (let part = 0; part <= 4; part += 1) {
      const [x, y] = [left + (part / 4) * width, height * (1 - part / 4)];
      drawing.append(
        shape("path", { d: `M${left},${y}h${width}`, style: "stroke: var(--rule)" }),
        shape("text", { x: left - 4, y: y + 4, "text-anchor": "end", style: grey }, ((part / 4) * top).toPrecision(3)),
        shape("text", { x, y: height + 14, "text-anchor": part === 4 ? "end" : "middle", style: grey }, String(+(first + (part / 4) * (last - first)).toPrecision(3))),
      );
    }
    drawing.append(shape("text", { x: left, y: height + 30, style: grey }, "messages per second, over the seconds since the window began"));
    plot.series.slice(1).filter((series) => series.show).forEach((series, index) => {
      const points = plot.data[0].map((x, i) => [x, plot.data[index + 1][i]]).filter(([, y]) => y != null).map(([x, y]) => point(x, y));
      drawing.append(shape("polyline", { points: points.join(" "), style: `fill: none; stroke-width: 1.6; stroke: var(${series.variable})` }));
    });
    return drawing;
  };

  /** The two ways to save it, under a figure. */
  const savable = (box, caption, drawing) => {
    const title = [headingOf(box), caption].filter(Boolean).join(": ");
    const name = title.replace(/[^\w.]+/g, "-").toLowerCase();
    const part = made("details", "", { className: "save" });
    const summary = made("summary", "Save");
    summary.append(made("span", ` ${caption}`, { className: "unseen" }));
    const button = (text, click) => {
      const element = made("button", text, { type: "button" });
      element.addEventListener("click", click);
      return element;
    };
    part.append(
      summary,
      button("SVG", () => save(new Blob([alone(drawing(), title).text], { type: "image/svg+xml" }), `${name}.svg`)),
      button("PNG", () => savePng(alone(drawing(), title), `${name}.png`)),
    );
    box.append(part);
  };
  for (const figure of document.querySelectorAll("figure")) {
    const [drawing, table] = [figure.querySelector("svg[role=img]"), figure.querySelector(".heat")];
    const caption = figure.querySelector("figcaption")?.textContent ?? "";
    if (drawing || table) savable(figure, caption, () => drawing ?? surface(table));
  }

  // --- what a reader touches

  for (const kind of kinds) {
    const set = made("fieldset", "");
    set.append(made("legend", `${kind}s`));
    for (const name of names[kind]) {
      const box = made("input", "", { type: "checkbox", name: kind, value: name, checked: true });
      const label = made("label", "");
      label.append(box, ` ${name}`);
      box.addEventListener("change", () => {
        if (box.checked) leftOut[kind].delete(name); else leftOut[kind].add(name);
        show();
        remember();
      });
      set.append(label);
    }
    const turned = made("button", "none of these", { type: "button", name: kind });
    turned.addEventListener("click", () => {
      leftOut[kind] = new Set(leftOut[kind].size ? [] : names[kind]);
      show();
      remember();
    });
    set.append(turned);
    byId("choices").append(set);
  }
  byId("filter").hidden = false;
  byId("everything").hidden = false;
  byId("all-tools").hidden = false;
  Object.entries(sheets).forEach(([name, { title }]) => byId("sheet").add(new Option(title, name)));
  const choose = (name) => { Object.assign(sheet, { name, order: undefined, whole: false }); fill(); remember(); };
  byId("sheet").addEventListener("change", (event) => choose(event.target.value));
  byId("all").addEventListener("toggle", () => {
    if (byId("all").open !== (sheet.name !== "")) choose(byId("all").open ? Object.keys(sheets)[0] : "");
  });
  byId("all-rest").addEventListener("click", () => { sheet.whole = true; fill(); });
  byId("copy-csv").addEventListener("click", () => copy(csv(), "Table"));
  byId("copy-link").addEventListener("click", () => copy(location.href, "Link"));
  addEventListener("hashchange", restore);
  restore();
  return { shows, savable, lines, shape, numberOf: (contestant) => contestantStyles.find(([, name]) => name === contestant)[0] };
})();
