"use strict";
(() => {
  document.documentElement.classList.add("js");
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const make = (tag, classes, text) => {
    const element = document.createElement(tag);
    element.className = classes;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // The learning curves as chosen: their places are worked out here, ranges, marks and texts come with the page.
  const blob = document.getElementById("curves");
  const { frames, curves } = blob ? JSON.parse(blob.textContent) : { frames: {}, curves: [] };
  const figure = document.getElementById("curve");
  const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`)?.value;
  const placer = (log, [lo, hi]) => (v) => {
    if (v === null || (log && v <= 0)) return null;
    return log ? Math.log(v / lo) / Math.log(hi / lo) : (v - lo) / (hi - lo);
  };
  const round = (v) => Math.round(v * 1000 * 10) / 10;
  // Pieces of points that all have a place.
  const pieces = (points) => {
    const all = [[]];
    for (const point of points) {
      if (point.includes(null)) all.push([]); else all[all.length - 1].push(point);
    }
    return all.filter((piece) => piece.length > 0);
  };
  const path = (list, end) => list.map((piece) => `M${piece.map(([x, y]) => `${round(x)} ${round(1 - y)}`).join(" ")}${end}`).join("");
  const svg = (tag, attributes, parent) => {
    const element = document.createElementNS(parent.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  };
  const draw = () => {
    const [metric, along, kind, range] = ["metric", "along", "kind", "range"].map(chosen);
    const frame = frames[[metric, along, kind, range].join(" ")];
    const log = kind === "log";
    const [px, py] = [placer(log, frame.x), placer(log, frame.y)];
    const marks = figure.querySelector(".marks");
    marks.replaceChildren();
    for (const curve of curves) {
      const group = svg("g", { class: `k${curve.c} s${curve.c}${curve.best ? " best" : ""}` }, marks);
      group.classList.toggle("off", hidden.has(curve.c));
      const [means, halves] = curve.q[metric] ?? [[]];
      const xs = curve.x[along];
      if (halves) {
        const ends = means.map((mean, i) => (mean === null || halves[i] === null ? [null] : [px(xs[i]), py(mean - halves[i]), py(mean + halves[i])]));
        const areas = pieces(ends).filter((piece) => piece.length > 1)
          .map((piece) => [...piece.map(([x, lo]) => [x, lo]), ...piece.map(([x, , hi]) => [x, hi]).reverse()]);
        svg("path", { class: "band", d: path(areas, "z") }, group);
      }
      svg("path", { class: "line", d: path(pieces(means.map((mean, i) => [px(xs[i]), py(mean)])), "") }, group);
      if (means.length === 1) svg("path", { class: "dot", d: `${path(pieces([[px(xs[0]), py(means[0])]]), "")}h0` }, group);
      for (const run of curve.diverged) {
        const inner = svg("g", { class: "diverged" }, group);
        const points = pieces(run.q[metric].map((y, i) => [px(run.x[along][i]), py(y)]));
        svg("path", { class: "line", d: path(points, "") }, inner);
        const last = points.at(-1)?.at(-1);
        if (last) svg("path", { class: "dot", d: `${path([[last]], "")}h0` }, inner);
      }
    }
    figure.querySelector(".grid").setAttribute("d", frame.xt.map(([x]) => `M${x * 10} 0V1000`).join("") + frame.yt.map(([y]) => `M0 ${y * 10}H1000`).join(""));
    const ticks = figure.querySelector(".ticks");
    ticks.replaceChildren();
    for (const [x, text, crowded] of frame.xt) {
      const tick = make("span", crowded ? "tx crowded" : "tx", text);
      tick.style.left = `${x}%`;
      ticks.append(tick);
    }
    for (const [y, text] of frame.yt) {
      const tick = make("span", "ty", text);
      tick.style.top = `${y}%`;
      ticks.append(tick);
    }
    figure.querySelector(".xtitle").textContent = frame.xtitle;
    figure.querySelector(".ytitle").textContent = frame.ytitle;
    figure.querySelector("figcaption").textContent = `${metric} over training, mean over seeds with 95% interval`;
    Object.assign(figure.dataset, { metric, along, kind, x0: frame.x[0], x1: frame.x[1] });
  };

  // Which configurations are shown, here and in every other plot.
  const hidden = new Set();
  const apply = (box) => {
    const c = box.dataset.toggle;
    if (box.checked) hidden.delete(Number(c)); else hidden.add(Number(c));
    for (const group of all(`.s${c}`)) group.classList.toggle("off", !box.checked);
  };
  const boxes = all("input[data-toggle]");
  const summarise = () => {
    for (const arm of all("input[data-arm]")) {
      const own = boxes.filter((box) => box.dataset.of === arm.dataset.arm);
      arm.checked = own.every((box) => box.checked);
      arm.indeterminate = !arm.checked && own.some((box) => box.checked);
    }
  };
  for (const box of boxes) box.addEventListener("change", () => { apply(box); summarise(); });
  for (const arm of all("input[data-arm]")) {
    arm.addEventListener("change", () => {
      for (const box of boxes) {
        if (box.dataset.of === arm.dataset.arm) { box.checked = arm.checked; apply(box); }
      }
      summarise();
    });
  }
  // A browser that goes back to the page remembers the boxes.
  boxes.forEach(apply);
  summarise();

  if (figure) {
    for (const input of all("#learning .controls input")) input.addEventListener("change", draw);
    draw();
  }

  // Values under the pointer.
  const nearest = (places, x) => {
    let best = 0;
    for (let i = 1; i < places.length; i++) {
      if (Math.abs(places[i] - x) < Math.abs(places[best] - x)) best = i;
    }
    return best;
  };
  for (const figure of all("figure[data-hover]")) {
    const area = figure.querySelector(".area");
    const cursor = make("div", "cursor");
    const tip = make("div", "tip");
    tip.setAttribute("aria-hidden", "true");
    cursor.hidden = tip.hidden = true;
    area.append(cursor, tip);
    // The drawing's own title would cover the values: it stays as the drawing's name.
    const title = area.querySelector("svg > title");
    const drawing = area.querySelector("svg");
    drawing.setAttribute("aria-label", title.textContent);
    drawing.removeAttribute("aria-labelledby");
    drawing.setAttribute("aria-describedby", area.querySelector("svg > desc").id);
    title.remove();
    // Where the values shown stand, from 0 at the left to 1.
    let shown = null;
    const hide = () => { shown = null; cursor.hidden = tip.hidden = true; };
    const frameOf = () => {
      const log = figure.dataset.kind === "log";
      const ends = [Number(figure.dataset.x0), Number(figure.dataset.x1)];
      return { along: figure.dataset.along ?? "step", log, ends, place: placer(log, ends) };
    };
    const show = (share) => {
      const { along, log, ends: [lo, hi], place } = frameOf();
      const under = log ? lo * (hi / lo) ** share : lo + (hi - lo) * share;
      let rows = [];
      for (const curve of curves) {
        const values = curve.q[figure.dataset.metric];
        const xs = curve.x[along];
        if (!values || hidden.has(curve.c) || xs.length === 0) continue;
        const i = nearest(xs, under);
        const at = place(xs[i]);
        if (values[0][i] === null || at === null || at < -1e-9) continue;
        rows.push({ curve, x: xs[i], off: Math.abs(at - share), mean: values[0][i], half: values[1] ? values[1][i] : null });
      }
      const first = rows.reduce((best, row) => (best === null || row.off < best.off ? row : best), null);
      if (first === null) { hide(); return; }
      // One step of all curves; along other axes each curve has its own places, and those nearby are shown.
      rows = rows.filter((row) => (along === "step" ? row.x === first.x : row.off < first.off + 0.04));
      rows.sort((a, b) => a.mean - b.mean);
      tip.replaceChildren(make("b", "", along === "step" ? `step ${first.x}` : `about ${Number(first.x.toPrecision(3))} ${along}`));
      for (const row of rows.slice(0, 16)) {
        const line = make("div", `k${row.curve.c}`);
        const half = row.half === null ? "" : ` ± ${row.half.toPrecision(2)}`;
        line.append(make("span", "chip"), make("span", "", row.curve.name), make("span", "v", row.mean.toPrecision(5) + half));
        tip.append(line);
      }
      cursor.hidden = tip.hidden = false;
      shown = place(first.x);
      const left = shown * 100;
      cursor.style.left = `${left}%`;
      tip.style.left = left < 50 ? `calc(${left}% + .6rem)` : "auto";
      tip.style.right = left < 50 ? "auto" : `calc(${100 - left}% + .6rem)`;
    };
    const point = (event) => {
      const box = area.getBoundingClientRect();
      show(Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)));
    };
    area.addEventListener("pointermove", point);
    area.addEventListener("pointerdown", point);
    // A finger that was lifted leaves the values to be read, until something else is touched.
    area.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
    area.addEventListener("blur", hide);
    // Arrows go from one logged step to the next.
    area.tabIndex = 0;
    area.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Escape") hide();
      if (move === undefined) return;
      event.preventDefault();
      const { along, place } = frameOf();
      const seen = curves.filter((curve) => curve.q[figure.dataset.metric] && !hidden.has(curve.c));
      const places = [...new Set(seen.flatMap((curve) => curve.x[along]))].map(place)
        .filter((at) => at !== null && at >= 0 && at <= 1).sort((a, b) => a - b);
      if (places.length === 0) return;
      const next = shown === null ? (move < 0 ? places.length - 1 : 0) : nearest(places, shown) + move;
      show(places[Math.min(places.length - 1, Math.max(0, next))]);
    });
  }

  // Paper has all that can be unfolded.
  const folded = all("details:not([open])");
  addEventListener("beforeprint", () => { for (const part of folded) part.open = true; });
  addEventListener("afterprint", () => { for (const part of folded) part.open = false; });

  // Tables sorted by their heads; cells without a value come last.
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent.trim() : cell.dataset.v;
  };
  const order = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };
  for (const table of all("table.sortable")) {
    all("thead th", table).forEach((head, column) => {
      const button = make("button", "", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = Array.from(table.tBodies[0].rows);
        rows.sort((a, b) => {
          const [x, y] = [key(a, column), key(b, column)];
          if (x === "" || y === "") return Number(x === "") - Number(y === "");
          return down ? order(y, x) : order(x, y);
        });
        table.tBodies[0].append(...rows);
      });
    });
  }
})();
