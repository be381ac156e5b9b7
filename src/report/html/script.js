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

  // Which learning curve is shown.
  const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`)?.value;
  const choose = () => {
    for (const figure of all("#learning figure")) {
      figure.hidden = figure.dataset.metric !== chosen("metric") || figure.dataset.scale !== chosen("scale");
    }
  };
  for (const input of all('input[name="metric"], input[name="scale"]')) input.addEventListener("change", choose);
  if (chosen("metric")) choose();

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

  // Values under the pointer.
  const blob = document.getElementById("curves");
  const curves = blob ? JSON.parse(blob.textContent) : [];
  const nearest = (steps, step) => {
    let best = 0;
    for (let i = 1; i < steps.length; i++) {
      if (Math.abs(steps[i] - step) < Math.abs(steps[best] - step)) best = i;
    }
    return best;
  };
  for (const figure of all("figure.hover")) {
    const area = figure.querySelector(".area");
    const cursor = make("div", "cursor");
    const tip = make("div", "tip");
    tip.setAttribute("aria-hidden", "true");
    cursor.hidden = tip.hidden = true;
    area.append(cursor, tip);
    // The drawing's own title would cover the values: it stays as the drawing's name.
    const title = area.querySelector("svg > title");
    const svg = area.querySelector("svg");
    svg.setAttribute("aria-label", title.textContent);
    svg.removeAttribute("aria-labelledby");
    svg.setAttribute("aria-describedby", area.querySelector("svg > desc").id);
    title.remove();
    const log = figure.dataset.kind === "log";
    const [lo, hi] = [Number(figure.dataset.x0), Number(figure.dataset.x1)];
    const step = (share) => (log ? lo * (hi / lo) ** share : lo + (hi - lo) * share);
    const share = (x) => (log ? Math.log(x / lo) / Math.log(hi / lo) : (x - lo) / (hi - lo));
    const hide = () => { cursor.hidden = tip.hidden = true; };
    const show = (event) => {
      const box = area.getBoundingClientRect();
      const under = step(Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)));
      const rows = [];
      let at = null;
      for (const curve of curves) {
        const values = curve.q[figure.dataset.q];
        if (!values || hidden.has(curve.c) || curve.x.length === 0) continue;
        const i = nearest(curve.x, under);
        if (values[0][i] === null || (log && curve.x[i] <= 0)) continue;
        if (at === null || Math.abs(curve.x[i] - under) < Math.abs(at - under)) at = curve.x[i];
        rows.push({ curve, x: curve.x[i], mean: values[0][i], half: values[1] ? values[1][i] : null });
      }
      if (at === null) { hide(); return; }
      rows.sort((a, b) => a.mean - b.mean);
      tip.replaceChildren(make("b", "", `step ${at}`));
      for (const row of rows.filter((row) => row.x === at).slice(0, 16)) {
        const line = make("div", `k${row.curve.c}`);
        const half = row.half === null ? "" : ` ± ${row.half.toPrecision(2)}`;
        line.append(make("span", "chip"), make("span", "", row.curve.name), make("span", "v", row.mean.toPrecision(5) + half));
        tip.append(line);
      }
      cursor.hidden = tip.hidden = false;
      const place = share(at) * 100;
      cursor.style.left = `${place}%`;
      tip.style.left = place < 50 ? `calc(${place}% + .6rem)` : "auto";
      tip.style.right = place < 50 ? "auto" : `calc(${100 - place}% + .6rem)`;
    };
    area.addEventListener("pointermove", show);
    area.addEventListener("pointerdown", show);
    area.addEventListener("pointerleave", hide);
  }

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
