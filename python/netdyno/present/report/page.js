"use strict";
(() => {
  const root = document.documentElement;
  const { contestants, scenarios, ring, mark: lossMark } = JSON.parse(document.getElementById("data").textContent);
  const redraws = [];
  const variable = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // A file opened from disk may have no storage: the choice then lasts as long as the page.
  const remembered = () => { try { return localStorage.getItem("netdyno-theme"); } catch { return null; } };
  const remember = (value) => { try { localStorage.setItem("netdyno-theme", value); } catch { /* see above */ } };

  const themeButton = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const setTheme = (name) => {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    themeButton.querySelector("span").textContent = name;
    redraws.forEach((redraw) => redraw());
  };
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length];
    remember(next);
    setTheme(next);
  });

  const option = (select, value, text) => select.add(new Option(text, value));

  /** One line per contestant: the mean over the chosen blocks at each step. */
  const lines = (level, block) => {
    const chosen = level.traces.filter((trace) => block === "all" || trace.block === Number(block));
    const steps = Math.max(0, ...chosen.map((trace) => trace.per_second.length));
    const times = Array.from({ length: steps }, (_, i) => +((i + 0.5) * level.step_s).toFixed(6));
    const rows = contestants.map((_, contestant) => {
      const own = chosen.filter((trace) => trace.contestant === contestant);
      return times.map((_, i) => {
        const values = own.filter((trace) => i < trace.per_second.length).map((trace) => trace.per_second[i]);
        return values.length ? values.reduce((a, b) => a + b) / values.length : null;
      });
    });
    return [times, ...rows];
  };

  const rate = (value) =>
    value == null ? "–" : value >= 1e6 ? (value / 1e6).toFixed(2) + "M/s" : value >= 1e3 ? (value / 1e3).toFixed(1) + "k/s" : +value.toPrecision(3) + "/s";
  const tick = (value) => (value >= 1e6 ? value / 1e6 + "M" : value >= 1e3 ? value / 1e3 + "k" : String(value));

  /** The contestant's marker as in the page's legends. */
  const mark = (contestant) => {
    const { path, colour } = contestants[contestant];
    const box = netdyno.shape("svg", { class: "mark", viewBox: "-8 -8 16 16", width: 13, height: 13, "aria-hidden": "true" });
    box.append(netdyno.shape("path", { d: path, style: `fill: var(${colour})` }));
    return box;
  };

  const percent = (share) => `${+(100 * share).toPrecision(3)}%`;

  /** The loss that a contestant's line leaves out: the mean of the chosen trials; nothing where none can be lost. */
  const loss = (level, block, contestant) => {
    const own = level.traces.filter((trace) => trace.contestant === contestant && trace.lost != null && (block === "all" || trace.block === Number(block)));
    if (!own.length) return { text: "", above: false };
    const above = own.some((trace) => trace.above);
    const mean = own.reduce((sum, trace) => sum + trace.lost, 0) / own.length;
    return { text: ` (${percent(mean)} lost${above ? ` ${lossMark}` : ""})`, above };
  };

  /** The contestant's own marker every few points, as in the other figures, ringed where too much was lost. */
  const drawMarkers = (plot) => {
    const { ctx } = plot;
    const scale = devicePixelRatio * 0.6;
    plot.series.forEach((series, index) => {
      if (index === 0 || !series.show) return;
      const values = plot.data[index];
      const every = Math.max(1, Math.round(values.length / 6));
      const path = new Path2D(contestants[series.contestant].path);
      ctx.save();
      ctx.fillStyle = variable(contestants[series.contestant].colour);
      for (let i = (index * 2) % every; i < values.length; i += every) {
        if (values[i] == null) continue;
        ctx.setTransform(scale, 0, 0, scale, plot.valToPos(plot.data[0][i], "x", true), plot.valToPos(values[i], "y", true));
        ctx.fill(path);
        if (!series.above) continue;
        ctx.scale(1.5, 1.5);
        ctx.strokeStyle = variable("--bad");
        ctx.lineWidth = 1.6;
        ctx.stroke(new Path2D(ring));
      }
      ctx.restore();
    });
  };

  const draw = (box, level, block) => {
    const chart = box.querySelector(".chart");
    const all = lines(level, block);
    const present = contestants.map((_, contestant) => contestant)
      .filter((contestant) => netdyno.shows("contestant", contestants[contestant].name) && all[contestant + 1].some((value) => value != null));
    const axis = (label, extra) => ({
      label, stroke: variable("--muted"), grid: { stroke: variable("--rule"), width: 1 }, ticks: { stroke: variable("--rule") },
      font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", ...extra,
    });
    chart.replaceChildren();
    const plot = new uPlot({
      width: Math.max(240, chart.clientWidth), height: 260,
      scales: { x: { time: false }, y: { range: (_, __, high) => [0, (high || 1) * 1.08] } },
      axes: [
        axis("seconds since the window began", { values: (_, ticks) => ticks.map(String) }),
        axis("messages per second", { size: 56, values: (_, ticks) => ticks.map(tick) }),
      ],
      series: [
        { label: "second", value: (_, value) => (value == null ? "–" : value.toFixed(2)) },
        ...present.map((contestant) => [contestant, loss(level, block, contestant)]).map(([contestant, lost]) => ({
          contestant, variable: contestants[contestant].colour, above: lost.above, label: contestants[contestant].name + lost.text, stroke: () => variable(contestants[contestant].colour), width: 1.6,
          points: { show: false }, value: (_, value) => rate(value),
        })),
      ],
      hooks: { draw: [drawMarkers] },
    }, [all[0], ...present.map((contestant) => all[contestant + 1])], chart);
    chart.querySelectorAll(".u-legend .u-marker").forEach((marker, index) => marker.replaceWith(index ? mark(present[index - 1]) : ""));
    return plot;
  };

  for (const box of document.querySelectorAll(".timeline")) {
    const levels = scenarios[box.dataset.scenario];
    const [levelSelect, blockSelect] = [box.querySelector(".level"), box.querySelector(".block")];
    let plot = null;
    levels.forEach((level, i) => option(levelSelect, i, level.label));
    levelSelect.value = String(levels.length - 1);
    const blocks = [...new Set(levels.flatMap((level) => level.traces.map((trace) => trace.block)))].sort((a, b) => a - b);
    option(blockSelect, "all", "mean of all");
    blocks.forEach((block) => option(blockSelect, block, block));
    const redraw = () => {
      if (plot) plot.destroy();
      plot = draw(box, levels[Number(levelSelect.value)], blockSelect.value);
    };
    levelSelect.addEventListener("change", redraw);
    blockSelect.addEventListener("change", redraw);
    redraws.push(redraw);
    netdyno.savable(box, "Throughput over time", () => netdyno.lines(plot));
    let width = 0;
    new ResizeObserver(([entry]) => {
      if (Math.round(entry.contentRect.width) === width) return;
      width = Math.round(entry.contentRect.width);
      if (plot) plot.setSize({ width: Math.max(240, width), height: 260 });
    }).observe(box.querySelector(".chart"));
  }

  document.addEventListener("netdyno-filter", () => redraws.forEach((redraw) => redraw()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((redraw) => redraw()));
  setTheme(themes.includes(remembered()) ? remembered() : "auto");
})();
