"use strict";
/** Flame graphs of one server, or of two held against each other, drawn where the reader asks for them: a frame is made
 * as wide as the drawing, found by its name, and reached by keyboard. */
(() => {
  const { names, questions, least, kernel } = JSON.parse(document.getElementById("profiles").textContent);
  const WHOLE = 100_000; // shares are whole numbers of it (present/profile/packing.py)
  const ROW = 18;
  const STEPS = [0.005, 0.02, 0.05, 0.15]; // from which change of its share, of all time, a frame has how much colour
  const LEAST_CHANGE = Math.max(0.002, least); // of a function that stands in the table
  const MOST_CHANGES = 20;
  const SVG = "http://www.w3.org/2000/svg";

  const made = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
  const shape = (name, attributes, text = "") => {
    const element = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach((pair) => element.setAttribute(...pair));
    element.textContent = text;
    return element;
  };
  const share = (part) => `${+(100 * part).toPrecision(3)}%`;
  const titled = (parent, level, text) => parent.append(made(`h${level}`, text));

  // --- what is drawn

  /** The frames of a profile, each after its caller: a name, how deep, its share, and the share in which it called no
   * other. */
  const unpacked = (packed) => {
    const frames = [];
    const path = [];
    for (let i = 0; i < packed.length; i += 4) {
      const [name, depth] = [names[packed[i]], packed[i + 1]];
      const [width, own] = [packed[i + 2] / WHOLE, packed[i + 3] / WHOLE];
      const above = path[depth - 1];
      const frame = { name, depth, width, own, above, x: above ? above.next : 0, calls: false };
      frame.next = frame.x;
      if (above) { above.next += width; above.calls = true; }
      path[depth] = frame;
      frames.push(frame);
    }
    return frames;
  };

  const functions = (profile) => {
    const found = new Map();
    for (let i = 0; i < profile.functions.length; i += 2) found.set(names[profile.functions[i]], profile.functions[i + 1] / WHOLE);
    return found;
  };

  const look = (name) => (name.endsWith(kernel) ? "kernel" : name.startsWith("[") ? "nameless" : "user");
  const alone = ({ name, width, own, calls }) => [look(name), `${share(width)} of the time${own && calls ? `, ${share(own)} in itself` : ""}`];

  /** A frame has the colour of its function, wherever that is called from, for two servers seldom come to the same
   * function by the same way. */
  const against = (before, after) => ({ name, width }) => {
    const [was, is] = [before.get(name) ?? 0, after.get(name) ?? 0];
    const step = STEPS.filter((from) => Math.abs(is - was) >= from).length;
    const words = `${share(width)} here; from ${share(was)} to ${share(is)} of the time, wherever it is called`;
    return [step ? `${is > was ? "more" : "less"}${step}` : "same", words];
  };

  // --- a drawing

  const drawing = (title, profile, describe) => {
    const figure = made("figure", "", { className: "flame-figure" });
    const caption = made("figcaption", title);
    const frames = unpacked(profile.frames);
    if (profile.left_out) caption.append(" ", made("span", `not drawn: ${profile.left_out} below ${share(least)} of the time each, or too deep`, { className: "note" }));
    const controls = made("div", "", { className: "controls" });
    const find = made("input", "", { type: "search", autocomplete: "off" });
    find.setAttribute("aria-label", `Find frames in ${title}`);
    const label = made("label", "Find ");
    label.append(find);
    const reset = made("button", "Show all", { type: "button", disabled: true });
    const output = made("output", "", { className: "frame-said" });
    controls.append(label, reset, output);
    const height = ROW * (1 + Math.max(...frames.map((frame) => frame.depth)));
    const svg = shape("svg", { class: "flame", role: "tree", "aria-label": `Flame graph, ${title}`, width: "100%", height });
    for (const frame of frames) {
      const [kind, words] = describe(frame);
      const tip = `${frame.name}: ${words}`;
      frame.kind = kind;
      frame.box = shape("svg", { class: `frame ${kind}`, role: "treeitem", "aria-level": frame.depth + 1, "aria-label": tip, tabindex: -1, y: ROW * frame.depth, height: ROW - 1 });
      frame.box.append(shape("title", {}, tip), shape("rect", { width: "100%", height: "100%" }), shape("text", { x: 3, y: 12.5 }, frame.name));
      frame.box.frame = frame;
    }
    svg.append(...frames.map((frame) => frame.box));
    figure.append(caption, controls, svg);

    const frameOf = (event) => event.target.closest(".frame")?.frame;
    const say = (frame) => { output.textContent = frame.box.getAttribute("aria-label"); };
    const isAbove = (caller, callee) => {
      for (let up = callee.above; up; up = up.above) if (up === caller) return true;
      return false;
    };
    const zoom = (chosen) => {
      const scale = 100 / chosen.width;
      for (const frame of frames) {
        const above = isAbove(frame, chosen);
        frame.shown = above || frame === chosen || isAbove(chosen, frame);
        frame.extent = above ? [0, 100] : [(frame.x - chosen.x) * scale, frame.width * scale];
        frame.box.style.display = frame.shown ? "" : "none";
        frame.box.classList.toggle("caller", above);
        frame.box.setAttribute("x", `${frame.extent[0]}%`);
        frame.box.setAttribute("width", `${frame.extent[1]}%`);
      }
      reset.disabled = chosen === frames[0];
    };
    const focus = (frame) => {
      if (!frame) return;
      for (const candidate of frames) candidate.box.setAttribute("tabindex", candidate === frame ? "0" : "-1");
      frame.box.focus();
      say(frame);
    };
    const widest = (candidates) =>
      candidates.reduce((best, frame) => (!best || frame.width > best.width ? frame : best), undefined);
    const beside = (frame, step) => {
      const isNeighbour = ({ shown, depth }) => shown && depth === frame.depth;
      const row = frames.filter(isNeighbour).sort((a, b) => a.x - b.x);
      return row[row.indexOf(frame) + step];
    };
    const keys = {
      ArrowDown: (frame) => focus(widest(frames.filter((callee) => callee.shown && callee.above === frame))),
      ArrowUp: (frame) => focus(frame.above),
      ArrowLeft: (frame) => focus(beside(frame, -1)),
      ArrowRight: (frame) => focus(beside(frame, 1)),
      Home: () => focus(frames[0]),
      Enter: zoom,
      " ": zoom,
      Escape: () => zoom(frames[0]),
    };
    svg.addEventListener("keydown", (event) => {
      if (!(event.key in keys) || !frameOf(event)) return;
      event.preventDefault();
      keys[event.key](frameOf(event));
    });
    svg.addEventListener("click", (event) => {
      const frame = frameOf(event);
      if (frame) { focus(frame); zoom(frame); }
    });
    svg.addEventListener("mouseover", (event) => { if (frameOf(event)) say(frameOf(event)); });
    reset.addEventListener("click", () => zoom(frames[0]));
    find.addEventListener("input", () => {
      const query = find.value.trim().toLowerCase();
      const counted = new Set();
      let sum = 0;
      for (const frame of frames) {
        const found = query !== "" && frame.name.toLowerCase().includes(query);
        frame.box.classList.toggle("found", found);
        if (found && !counted.has(frame.above)) sum += frame.width;
        if (found || counted.has(frame.above)) counted.add(frame);
      }
      output.textContent = query === "" ? "" : `${(100 * sum).toPrecision(3)}% of the time in frames with this name`;
    });
    zoom(frames[0]);
    frames[0].box.setAttribute("tabindex", "0");
    if (typeof netdyno !== "undefined") netdyno.savable(figure, title, () => still(frames, height));
    return figure;
  };

  /** Draw the frames shown as a picture that stands alone. */
  const still = (frames, height) => {
    const [wide, letter] = [1200, 7];
    const picture = shape("svg", { viewBox: `0 0 ${wide} ${height}` });
    for (const { name, depth, extent, kind } of frames.filter((frame) => frame.shown)) {
      const [x, y, width] = [extent[0] * wide / 100, ROW * depth, extent[1] * wide / 100];
      picture.append(shape("rect", { x, y, width, height: ROW - 1, style: `fill: var(--f-${kind}); stroke: var(--paper); stroke-width: 0.6` }));
      const fits = Math.floor((width - 6) / letter);
      if (fits > 2) picture.append(shape("text", { x: x + 3, y: y + 12.5, style: "fill: var(--f-ink); font-family: monospace" }, name.slice(0, fits)));
    }
    return picture;
  };

  // --- a question

  const legend = (words) => {
    const list = made("ul", "", { className: "legend" });
    list.setAttribute("aria-label", "Legend");
    for (const [kind, text] of words) {
      const item = made("li");
      item.append(made("span", "", { className: `frame-key ${kind}` }), ` ${text}`);
      list.append(item);
    }
    return list;
  };

  const differences = (title, servers, before, after) => {
    const found = [...new Set([...before.keys(), ...after.keys()])]
      .map((name) => [name, before.get(name) ?? 0, after.get(name) ?? 0])
      .filter(([, was, is]) => Math.abs(is - was) >= LEAST_CHANGE)
      .sort((a, b) => Math.abs(b[2] - b[1]) - Math.abs(a[2] - a[1]) || (a[0] < b[0] ? -1 : 1))
      .slice(0, MOST_CHANGES);
    const box = made("div", "", { className: "scroll", tabIndex: 0 });
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `${title}: what differs most`);
    const table = made("table", "", { className: "data" });
    const head = table.createTHead().insertRow();
    head.append(...["function", ...servers].map((text) => made("th", text, { scope: "col" })));
    const body = table.createTBody();
    for (const [name, was, is] of found) body.insertRow().append(made("th", name, { scope: "row", className: "function" }), made("td", share(was)), made("td", share(is)));
    box.append(table);
    return box;
  };

  const part = ({ title, profiles }, servers, chosen, level) => {
    const box = made("div");
    titled(box, level, title);
    for (const number of chosen) {
      const line = made("p", "", { className: "note" });
      line.append(made("strong", servers[number]), `: ${profiles[number].notes.join("; ")}.`);
      box.append(line);
    }
    const seen = chosen.filter((number) => profiles[number].frames.length);
    if (seen.length === 2) {
      const [before, after] = seen.map((number) => functions(profiles[number]));
      const [first, second] = seen.map((number) => servers[number]);
      box.append(legend([["more3", `takes more of the time in ${second} than in ${first}`], ["less3", "takes less"], ["same", "within half a per cent of the time"]]));
      for (const number of seen) box.append(drawing(`${servers[number]}, coloured by the difference`, profiles[number], against(before, after)));
      titled(box, level + 1, "What differs most, wherever it is called from");
      box.append(differences(title, [first, second], before, after));
    } else if (seen.length) {
      box.append(legend([["user", "the server and its libraries"], ["kernel", "the kernel"], ["nameless", "no name"]]));
      box.append(drawing(servers[seen[0]], profiles[seen[0]], alone));
    }
    return box;
  };

  const choice = (text, options, value) => {
    const [label, select] = [made("label", `${text} `), made("select")];
    options.forEach((option, number) => select.add(new Option(option, number)));
    select.value = String(value);
    select.setAttribute("aria-label", text);
    label.append(select);
    return [label, select];
  };

  const draw = (box) => {
    const { servers, parts } = questions[Number(box.dataset.question)];
    const level = Number(box.dataset.heading);
    const drawn = made("div");
    const show = (chosen) => drawn.replaceChildren(...parts.map((content) => part(content, servers, chosen, level)));
    if (servers.length > 1) {
      const controls = made("div", "", { className: "controls" });
      const options = servers.map((name, number) => (parts.some(({ profiles }) => profiles[number].frames.length) ? name : `${name} (no profile)`));
      const seen = servers.map((_, number) => number).filter((number) => options[number] === servers[number]);
      const [first, server] = choice("Server", options, seen[0] ?? 0);
      const [second, reference] = choice("held against", [...options, "nobody"], seen[1] ?? servers.length);
      const change = () => show([...new Set([server, reference].map((select) => Number(select.value)))].filter((number) => number < servers.length));
      server.addEventListener("change", change);
      reference.addEventListener("change", change);
      controls.append(first, second);
      box.append(controls);
      change();
    } else {
      show([0]);
    }
    box.append(drawn);
  };

  for (const box of document.querySelectorAll(".flames")) {
    const fold = box.closest("details");
    if (!fold || fold.open) draw(box); else fold.addEventListener("toggle", () => draw(box), { once: true });
  }
})();
