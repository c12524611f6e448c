// Flame graphs: a frame is made as wide as the drawing, found by its name, and reached by keyboard.
"use strict";
for (const figure of document.querySelectorAll(".flame-figure")) {
  const frames = [...figure.querySelectorAll(".frame")];
  const reset = figure.querySelector(".reset");
  const said = figure.querySelector(".said");
  const x = frame => Number(frame.dataset.x);
  const w = frame => Number(frame.dataset.w);
  const parent = frame => frames[Number(frame.dataset.p)];
  const shown = frame => frame.style.display !== "none";
  const say = frame => { said.textContent = frame.getAttribute("aria-label"); };

  function isAbove(frame, other) {
    for (let up = parent(other); up; up = parent(up)) if (up === frame) return true;
    return false;
  }

  function zoom(chosen) {
    const scale = 100 / w(chosen);
    const above = new Set();
    for (let up = parent(chosen); up; up = parent(up)) above.add(up);
    for (const frame of frames) {
      const inside = frame === chosen || (x(frame) >= x(chosen) - 1e-6 && x(frame) + w(frame) <= x(chosen) + w(chosen) + 0.01
        && Number(frame.dataset.d) > Number(chosen.dataset.d) && isAbove(chosen, frame));
      frame.style.display = inside || above.has(frame) ? "" : "none";
      frame.classList.toggle("above", above.has(frame));
      frame.setAttribute("x", above.has(frame) ? "0%" : `${(x(frame) - x(chosen)) * scale}%`);
      frame.setAttribute("width", above.has(frame) ? "100%" : `${w(frame) * scale}%`);
    }
    reset.disabled = chosen === frames[0];
    say(chosen);
  }

  function focus(frame) {
    if (!frame) return;
    for (const one of frames) one.setAttribute("tabindex", one === frame ? "0" : "-1");
    frame.focus({ preventScroll: false });
    say(frame);
  }

  const widest = some => some.reduce((best, one) => (!best || w(one) > w(best) ? one : best), undefined);
  const beside = (frame, step) => {
    const row = frames.filter(one => shown(one) && one.dataset.d === frame.dataset.d).sort((a, b) => x(a) - x(b));
    return row[row.indexOf(frame) + step];
  };

  function key(event) {
    const frame = event.target.closest(".frame");
    if (!frame) return;
    const number = String(frames.indexOf(frame));
    const goes = {
      ArrowDown: () => focus(widest(frames.filter(one => shown(one) && one.dataset.p === number))),
      ArrowUp: () => focus(parent(frame)),
      ArrowLeft: () => focus(beside(frame, -1)),
      ArrowRight: () => focus(beside(frame, 1)),
      Home: () => focus(frames[0]),
      Enter: () => zoom(frame),
      " ": () => zoom(frame),
      Escape: () => zoom(frames[0]),
    }[event.key];
    if (!goes) return;
    event.preventDefault();
    goes();
  }

  function find(text) {
    const wanted = text.trim().toLowerCase();
    let share = 0;
    const counted = new Set();
    for (const frame of frames) {
      const name = frame.querySelector("text").textContent.toLowerCase();
      const found = wanted !== "" && name.includes(wanted);
      frame.classList.toggle("found", found);
      const below = counted.has(parent(frame));
      if (found && !below) share += w(frame);
      if (found || below) counted.add(frame);
    }
    said.textContent = wanted === "" ? "" : `${share.toPrecision(3)}% of the time in frames with this name`;
  }

  const svg = figure.querySelector(".flame");
  svg.addEventListener("click", event => {
    const frame = event.target.closest(".frame");
    if (frame) { focus(frame); zoom(frame); }
  });
  svg.addEventListener("keydown", key);
  svg.addEventListener("mouseover", event => { const frame = event.target.closest(".frame"); if (frame) say(frame); });
  reset.addEventListener("click", () => zoom(frames[0]));
  figure.querySelector(".find").addEventListener("input", event => find(event.target.value));
}
