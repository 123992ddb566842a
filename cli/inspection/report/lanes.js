// Windows over time, and the order of the sections: behind page.js in one script.

// ---- windows over time: a lane of bars for each key, to zoom into ---------------------------------------------
const depthOf = ({ starts, ends }) => {
  const first = [...starts].sort((one, other) => one - other), last = [...ends].sort((one, other) => one - other);
  let closed = 0;
  return largest(first.map((start, at) => {
    while (closed < last.length && last[closed] <= start) closed++;
    return at + 1 - closed;
  }));
};
function addLanes(data) {
  const TALL = 32, TOP = 18, axis = data.axis, unit = axis.scale === "window" ? 1 : 0;
  const lanes = data.lanes.map((lane) => {
    let place = data.low;  // starts are steps from the one before
    const starts = lane.starts.map((step) => (place += step));
    const ends = starts.map((start, i) => start + lane.lengths[i]), counts = lane.counts || starts.map(() => 1);
    return { ...lane, starts, ends, counts, name: lane.key || "all rows" };
  });
  const isShared = ({ counts }) => counts.some((n) => n > 1);
  // Windows of a key that overlap stand below each other; bars that windows share do not overlap.
  const tracks = Math.min(Math.max(1, ...lanes.filter((lane) => !isShared(lane)).map(depthOf)), 6);
  const perWindow = (lane, i) => lane.sizes[i] / lane.counts[i];  // on average where several share a bar
  const tallestOf = (lane) => (lane.sizes ? largest(lane.sizes.map((_, i) => perWindow(lane, i))) : 0);
  const tallest = Math.ceil(largest(lanes.map(tallestOf)));
  const full = data.high > data.low ? [data.low, data.high] : [data.low - 0.5, data.high + 0.5];
  const finest = axis.scale === "number" ? (full[1] - full[0]) / 1e9 : axis.scale === "window" ? 2 : 20;
  let view = full.slice();
  let picked = null;

  const section = addSection("windows", "Windows over time");
  add(section, "p", "", aboutLanes());
  const figure = add(section, "figure", "lanes", "", { id: "lanes" });
  const controls = add(figure, "div", "controls", "", { id: "controls", role: "group", "aria-label": "Zoom" });
  for (const [name, sign, title] of [
    ["left", "\u2190", "Move left"],
    ["right", "\u2192", "Move right"],
    ["in", "+", "Zoom in"],
    ["out", "\u2212", "Zoom out"],
    ["all", "all", "Show all"],
  ]) add(controls, "button", "", sign, { type: "button", "data-do": name, "aria-label": title, title });
  const help = "Zoom: drag over a span, hold Ctrl and turn the wheel, or use the keys + and \u2212; \u2190 and \u2192 move " +
    "along, 0 shows all, \u2191 and \u2193 choose a key, N and P its next and previous window.";
  add(figure, "p", "help", help, { id: "lanes-help" });
  const sheet = add(figure, "div", "sheet", "",
    { id: "sheet", tabindex: 0, role: "group", "aria-label": "Windows over time", "aria-describedby": "lanes-help" });
  const ticks = addPicture(sheet, "ticks", 20, "");
  lanes.forEach((lane, at) => {
    let words = count(lane.windows, "window") + (lane.rows === null ? "" : `, ${count(lane.rows, "row")}`);
    if (lane.held) words += `, ${grouped(lane.held[2])} held`;
    lane.svg = addPicture(sheet, "lane", TOP + TALL + 6, `${lane.name}: ${words}`);
    lane.svg.setAttribute("data-lane", at);
    const letters = [...lane.name], short = letters.length <= 60 ? lane.name : `${letters.slice(0, 59).join("")}\u2026`;
    addLabel(lane.svg, 0, 13, short, lane.is_chosen ? "key chosen" : "key");
    addLabel(lane.svg, 1, 13, words, "faint");
    const plot = addPlot(lane.svg, TOP, TALL);
    add(plot, "path", "ground", "", { d: `M0 ${TALL - 0.5}H${WIDE}` });
    [lane.heldBar, lane.bars, lane.mark] = ["held", "windows", "picked"].map((classes) => add(plot, "path", classes));
  });
  const ask = "Point at a window, or press N, to read its times and its rows here.";
  const readout = add(figure, "p", "readout", ask, { id: "readout", "aria-live": "polite" });
  const hasHeld = lanes.some((lane) => lane.held), head = ["key", "windows"];
  if (data.is_by_rows) head.push("rows");
  head.push("first begins", "last ends");
  if (hasHeld) head.push("rows held");
  addHiddenTable(figure, "These keys", head, lanes.map((lane) => {
    const cells = [lane.name, grouped(lane.windows)], { starts, ends } = lane;
    if (data.is_by_rows && lane.rows !== null) cells.push(grouped(lane.rows));
    const first = starts.reduce((one, other) => Math.min(one, other), Infinity);
    const last = ends.reduce((one, other) => Math.max(one, other), -Infinity);
    cells.push(...(starts.length ? [placeText(first, axis), placeText(last, axis)] : ["", ""]));
    if (hasHeld) cells.push(grouped(lane.held ? lane.held[2] : 0));
    return cells;
  }));

  function aboutLanes() {
    const drawn = lanes.length, chosen = lanes.filter((lane) => lane.is_chosen).length, busy = drawn - chosen;
    let text = "Windows of all keys";
    if (drawn && !lanes[0].key) text = "All windows";
    else if (drawn !== data.keys) {
      const measure = data.is_by_rows ? "rows" : "windows";
      const words = chosen ? [chosen === 1 ? "1 chosen" : `the ${chosen} chosen`] : [];
      if (busy) words.push(busy > 1 ? `the ${busy} with most ${measure}` : `the one with most ${measure}`);
      text = `Windows of ${drawn} of ${data.keys === null ? "very many" : grouped(data.keys)} keys: ${words.join(" and ")}`;
    }
    const along = axis.scale === "window" ? "their numbers" : axis.name;
    text += `, along ${along} from ${placeText(data.low, axis)} to ${placeText(data.high, axis)}.`;
    if (tracks > 1) text += " Windows of a key that overlap stand below each other, and a row counts in each that has it.";
    else if (tallest) {
      const size = axis.scale === "window" ? "high as its window has rows" : "long as its window and as high as it has rows";
      text += ` A bar is as ${size}, at most ${grouped(tallest)}.`;
    }
    if (lanes.some((lane) => lane.held)) text += " Brown bars are rows that the state holds for the next unit.";
    if (lanes.some(isShared)) text += " Where a key has too many windows to draw, successive ones share a bar.";
    if (!data.missed) return text;
    text += ` Keys are too many to count each: one may have up to ${grouped(data.missed)} more than was counted.`;
    return text;
  }

  function drawAxis() {
    ticks.replaceChildren();
    addTicks(ticks, axisTicks(axis, ...view), 14);
    const [low, high] = view.map((place) => placeText(axis.scale === "time" ? Math.round(place) : place, axis));
    ticks.setAttribute("aria-label", `${axis.name} from ${low} to ${high}`);
  }
  // ---- the bars ----------------------------------------------------------------------------------------------
  function across(start, end) {
    const per = WIDE / (view[1] - view[0]);
    return [Math.max(-5, (start - view[0]) * per), Math.min(WIDE + 5, (end - view[0]) * per)];
  }
  function heldPath(lane) {
    if (!lane.held) return "";
    const start = data.low + lane.held[0];
    const [x, end] = across(start, start + lane.held[1]);
    if (end < -5 || x > WIDE + 5) return "";
    const wide = Math.max(end - x, 0.8);
    const tall = tallest ? Math.min(Math.max((lane.held[2] / tallest) * TALL, 1.5), TALL) : TALL * 0.6;
    return `M${x.toFixed(1)} ${(TALL - tall).toFixed(1)}h${wide.toFixed(1)}v${tall.toFixed(1)}h${(-wide).toFixed(1)}z`;
  }
  function columnPath(lane, i) {
    const [x, end] = across(lane.starts[i], lane.ends[i] + unit), wide = Math.max(end - x, 3);
    return `M${x.toFixed(1)} 0h${wide.toFixed(1)}v${TALL}h${(-wide).toFixed(1)}z`;
  }
  function barPath(lane, i) {
    const [x, end] = across(lane.starts[i], lane.ends[i] + unit);
    let tall = TALL * 0.6, top;
    if (tracks > 1) {
      tall = TALL / tracks - 0.8;
      top = (i % tracks) * (TALL / tracks);
    } else {
      if (lane.sizes && tallest) {
        tall = Math.max((perWindow(lane, i) / tallest) * TALL, 1.5);
      }
      top = TALL - tall;
    }
    const whole = Math.max(end - x, 0.8), wide = whole > 4 ? whole - 1 : whole;
    return `M${x.toFixed(1)} ${top.toFixed(1)}h${wide.toFixed(1)}v${tall.toFixed(1)}h${(-wide).toFixed(1)}z`;
  }
  const isSeen = (lane, i) => lane.ends[i] + unit >= view[0] && lane.starts[i] <= view[1];

  let isDue = false;
  function draw() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(drawNow);
  }
  function drawNow() {
    isDue = false;
    drawAxis();
    for (const lane of lanes) {
      let path = "";
      for (let i = 0; i < lane.starts.length; i++) if (isSeen(lane, i)) path += barPath(lane, i);
      lane.bars.setAttribute("d", path);
      lane.heldBar.setAttribute("d", heldPath(lane));
    }
    drawPicked();
  }
  function drawPicked() {
    lanes.forEach((lane, at) => {
      const isHere = picked && picked[0] === at && picked[1] >= 0 && isSeen(lane, picked[1]);
      lane.mark.setAttribute("d", isHere ? columnPath(lane, picked[1]) : "");
    });
  }
  function pick(at, i) {
    picked = [at, i];
    readout.classList.add("told");
    const lane = lanes[at];
    if (i < 0) {
      readout.textContent = `${lane.name}: no window here`;
    } else {
      const n = lane.counts[i];
      const words = [`${lane.name}: ${n === 1 ? "a window" : count(n, "window")}`];
      if (axis.scale === "window") words.push(`number ${numberText(lane.starts[i])}`);
      else {
        const length = lane.ends[i] - lane.starts[i];
        words.push(`from ${placeText(lane.starts[i], axis)} to ${placeText(lane.ends[i], axis)}`);
        words.push(axis.scale === "time" ? durationText(length) : `length ${numberText(length)}`);
      }
      if (lane.sizes) words.push(count(lane.sizes[i], "row"));
      readout.textContent = words.join(", ");
    }
    drawPicked();
  }

  // ---- moves -------------------------------------------------------------------------------------------------
  function look(low, high) {
    const span = Math.min(Math.max(high - low, finest), full[1] - full[0]);
    const middle = (low + high) / 2;
    const begin = Math.min(Math.max(middle - span / 2, full[0]), full[1] - span);
    view = [begin, begin + span];
    sheet.dataset.low = view[0];
    sheet.dataset.high = view[1];
    draw();
  }
  function zoom(factor, at = 0.5) {
    const span = view[1] - view[0], fixed = view[0] + span * at, now = Math.max(span * factor, finest);
    look(fixed - now * at, fixed + now * (1 - at));
  }
  function move(share) {
    const by = (view[1] - view[0]) * share;
    look(view[0] + by, view[1] + by);
  }
  function show(at, i) {
    const lane = lanes[at], span = view[1] - view[0];
    if (i < 0 || i >= lane.starts.length) return;
    if (!(lane.starts[i] >= view[0] && lane.ends[i] <= view[1])) {
      const middle = (lane.starts[i] + lane.ends[i]) / 2, wide = Math.max(span, lane.ends[i] - lane.starts[i]);
      look(middle - wide / 2, middle + wide / 2);
    }
    pick(at, i);
  }
  function next(by) {
    const at = picked ? picked[0] : 0;
    if (picked && picked[1] >= 0) return show(at, picked[1] + by);
    const lane = lanes[at];
    if (lane) show(at, Math.max(0, lane.starts.findIndex((start) => start >= view[0])));
  }
  function nextLane(by) {
    const at = Math.min(Math.max(picked ? picked[0] + by : 0, 0), lanes.length - 1);
    pick(at, nearest(lanes[at], (view[0] + view[1]) / 2, Infinity));
  }
  function nearest(lane, value, reach) {
    let found = -1, least = reach;
    for (let i = 0; i < lane.starts.length; i++) {
      const far = Math.max(lane.starts[i] - value, value - lane.ends[i] - unit, 0);
      if (far < least || (far === 0 && found < 0)) [found, least] = [i, far];
    }
    return found;
  }

  const acts = {
    in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25), all: () => look(...full),
  };
  const keys = {
    "+": acts.in, "=": acts.in, "-": acts.out, "_": acts.out, "\u2212": acts.out, ArrowLeft: acts.left, ArrowRight: acts.right,
    0: acts.all, Home: acts.all, ArrowUp: () => nextLane(-1), ArrowDown: () => nextLane(1), n: () => next(1), p: () => next(-1),
  };
  sheet.addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key] || keys[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });
  controls.addEventListener("click", (event) => {
    const act = acts[event.target.dataset.do];
    if (act) act();
  });

  const shareOf = (event) => {
    const box = sheet.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  sheet.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), shareOf(event));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      move(event.deltaX / 1000);
    }
  }, { passive: false });

  let from = null;
  const band = document.createElement("div");
  band.className = "brush";
  band.hidden = true;
  sheet.append(band);
  sheet.addEventListener("pointerdown", (event) => {
    if (event.button || event.pointerType === "touch") return;
    from = shareOf(event);
    sheet.setPointerCapture(event.pointerId);
  });
  sheet.addEventListener("pointermove", (event) => {
    const share = shareOf(event);
    if (from !== null) {
      band.hidden = Math.abs(share - from) < 0.005;
      band.style.left = `${100 * Math.min(share, from)}%`;
      band.style.width = `${100 * Math.abs(share - from)}%`;
      return;
    }
    hover(event, share);
  });
  function hover(event, share) {
    const svg = event.target.closest && event.target.closest("svg[data-lane]");
    if (!svg) return;
    const at = Number(svg.dataset.lane), span = view[1] - view[0];
    const i = nearest(lanes[at], view[0] + share * span, span / 100);
    if (i >= 0 && !(picked && picked[0] === at && picked[1] === i)) pick(at, i);
  }
  sheet.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const share = shareOf(event), [low, high] = [Math.min(share, from), Math.max(share, from)], span = view[1] - view[0];
    const isClick = high - low < 0.005;
    from = null;
    band.hidden = true;
    if (isClick) hover(event, share);
    else look(view[0] + low * span, view[0] + high * span);
  });
  sheet.addEventListener("pointercancel", () => { from = null; band.hidden = true; });
  sheet.addEventListener("dblclick", (event) => zoom(0.5, shareOf(event)));
  addEventListener("beforeprint", () => { picked = null; drawPicked(); });

  sheet.dataset.low = view[0];
  sheet.dataset.high = view[1];
  drawNow();  // at once: nothing shifts after the first picture
}

addHead();
if (report.lanes) addLanes(report.lanes);
if (report.over_time) addOverTime(report.over_time);
if (report.lengths || report.sizes || report.reasons.length) addDistributions();
if (report.calendar) addCalendar(report.calendar);
if (report.accounts.length) addAccounts();
if (report.phases.length) addPhases(report.phases);
addJob();
