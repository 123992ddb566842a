// The page of a report: what was measured stands in the element "data" as JSON, and all that is shown is made of it here,
// by this script and lanes.js behind it.
// Values become texts and attributes of elements only, so that no reader finds markup in them.
const SVG = "http://www.w3.org/2000/svg", WIDE = 1000, SECOND = 1e6, DAY = 864e8, MONTH = 30.4 * DAY;
const report = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");

// ---- elements ----------------------------------------------------------------------------------------------
function add(parent, tag, classes = "", text = "", attributes = {}) {
  const isSvg = tag === "svg" || parent.namespaceURI === SVG;
  const made = isSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  if (classes) made.setAttribute("class", classes);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, typeof value === "number" ? Number(value.toFixed(2)) : value);
  }
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}
const percent = (share) => `${(100 * share).toFixed(2)}%`;
// A picture of full width; the title says to readers that do not see it what it shows.
function addPicture(parent, classes, height, title) {
  return add(parent, "svg", classes, "", { role: "img", "aria-label": title, width: "100%", height });
}
// An area that is WIDE and ``height`` units, and is stretched to the width of the picture.
function addPlot(svg, top, height) {
  const size = { x: 0, y: top, width: "100%", height, viewBox: `0 0 ${WIDE} ${height}` };
  return add(svg, "svg", "", "", { ...size, preserveAspectRatio: "none", "aria-hidden": "true" });
}
// A text at a share of the width; near an edge it stands on the inner side of its place.
function addLabel(svg, share, y, words, classes = "", edge = 0.06) {
  const anchor = share < edge ? "start" : share > 1 - edge ? "end" : "middle";
  return add(svg, "text", classes, words, { x: percent(share), y, "text-anchor": anchor });
}
const addTicks = (svg, ticks, y) => ticks.forEach(([share, words], at) => addLabel(svg, share, y, words, at % 2 ? "odd" : ""));
// The first cell of each row is its header, the others are numbers.
function addTable(parent, caption, head, rows, classes = "") {
  const frame = add(parent, "div", "scroll", "", { role: "region", tabindex: 0, "aria-label": caption });
  const table = add(frame, "table", classes);
  add(table, "caption", "", caption);
  const line = add(add(table, "thead"), "tr");
  for (const name of head) add(line, "th", "", name, { scope: "col" });
  const body = add(table, "tbody");
  for (const [first, ...others] of rows) {
    const row = add(body, "tr");
    add(row, "th", "", first, { scope: "row" });
    for (const cell of others) add(row, "td", "", cell);
  }
}
// A table that readers open: the numbers behind the picture above it.
function addHiddenTable(parent, caption, head, rows) {
  const details = add(parent, "details");
  add(details, "summary", "", `${caption} as a table`);
  addTable(details, caption, head, rows);
}
// Shares of a whole: name, value, share as text, length of the bar, and its class.
function addBars(parent, caption, rows) {
  const table = add(parent, "table", "bars");
  add(table, "caption", "", caption);
  for (const [name, value, share, length, classes] of rows) {
    const line = add(table, "tr");
    add(line, "th", "", name, { scope: "row" });
    add(line, "td", "", value);
    add(line, "td", "share", share);
    const svg = add(add(line, "td", "bar"), "svg", "", "", { width: "100%", height: 10, "aria-hidden": "true" });
    add(svg, "rect", classes, "", { x: 0, y: 1, width: percent(length), height: 8 });
  }
}
function addSection(name, heading) {
  const made = add(main, "section", "", "", { id: name, "aria-labelledby": `${name}-heading` });
  add(made, "h2", "", heading, { id: `${name}-heading` });
  return made;
}


// ---- texts -------------------------------------------------------------------------------------------------
const two = (n) => String(n).padStart(2, "0");
const grouped = (n) => n.toLocaleString("en-US");
const names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const count = (n, thing) => `${grouped(n)} ${thing}${n === 1 ? "" : "s"}`;

function parts(micros) {
  const whole = Math.floor(micros / SECOND);
  return [new Date(whole * 1000), Math.round(micros - whole * SECOND)];
}
function dateText(date) {
  const iso = date.toISOString();
  return iso.slice(0, iso.indexOf("T"));
}
function clockText(date, rest) {
  const digits = rest ? "." + String(rest).padStart(6, "0").replace(/0+$/, "") : "";
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}${digits}`;
}
function timeText(micros) {
  const [date, rest] = parts(micros);
  return `${dateText(date)} ${clockText(date, rest)}`;
}
function placeText(value, axis) {
  return axis.scale === "time" ? timeText(value) + (axis.is_utc ? " UTC" : "") : numberText(value);
}
function numberText(value) {
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? grouped(value) : String(Number(value.toPrecision(6)));
}
function durationText(micros) {
  const small = [[SECOND, "s"], [1000, "ms"], [1, "µs"]];
  if (micros < 60 * SECOND) {
    const [size, name] = small.find(([size]) => micros >= size) || small[2];
    return `${Number((micros / size).toPrecision(3))} ${name}`;
  }
  const units = [[DAY, "d"], [36e8, "h"], [6e7, "min"], [SECOND, "s"]];
  const at = units.findIndex(([size]) => micros >= size);
  const [size, name] = units[at], [below, smaller] = units[at + 1];
  const n = Math.round(micros / below), whole = Math.floor(n / (size / below)), rest = n % (size / below);
  return whole >= 100 || !rest ? `${grouped(whole)} ${name}` : `${grouped(whole)} ${name} ${rest} ${smaller}`;
}
const secondsText = (seconds) => durationText(seconds * SECOND);
function bytesText(size) {
  const units = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
  const [unit, name] = units.find(([unit]) => size >= unit) || [1, "bytes"];
  return name === "bytes" ? `${grouped(size)} bytes` : `${Number((size / unit).toPrecision(3))} ${name}`;
}
function measureText(value, unit) {
  if (unit === "duration") return durationText(value);
  return numberText(value) + (unit !== "rows" ? "" : value === 1 ? " row" : " rows");
}
// Three digits that count, and never 0 or 100 for what is not.
function shareText(part, whole) {
  if (!whole || !part) return "0 %";
  const share = (100 * part) / whole;
  if (share < 0.01) return "< 0.01 %";
  return share >= 99.95 && share < 100 ? "> 99.9 %" : `${Number(share.toPrecision(3))} %`;
}
const dayText = (label) => `${Number(label.slice(-2))} ${names[Number(label.slice(-5, -3)) - 1]}`;
const dayOf = (ordinal) => dateText(new Date(ordinal * 864e5));
const sum = (values) => values.reduce((one, other) => one + other, 0);
const largest = (values) => values.reduce((one, other) => Math.max(one, other), 0);


// ---- labels of axes, each with its share of the width --------------------------------------------------------
const steps = [];
for (let power = 0; power < 6; power++) for (const factor of [1, 2, 5]) steps.push(factor * 10 ** power);
for (const n of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]) steps.push(n * SECOND);
for (const n of [1, 2, 3, 7, 14]) steps.push(n * DAY);
const months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12000];

function timeTicks(low, high, most) {
  const step = steps.find((step) => (high - low) / step <= most);
  const found = [];
  if (step === undefined) {
    const by = months.find((n) => (high - low) / (n * MONTH) <= most) || 12000;
    const first = parts(low)[0];
    let month = (first.getUTCFullYear() - 1970) * 12 + first.getUTCMonth();
    for (month = Math.ceil(month / by) * by; ; month += by) {
      const year = 1970 + Math.floor(month / 12), place = Date.UTC(year, ((month % 12) + 12) % 12) * 1000;
      if (!(place <= high)) return found;
      if (place >= low) found.push([place, by >= 12 ? `${year}` : `${names[((month % 12) + 12) % 12]} ${year}`]);
    }
  }
  const anchor = step >= DAY ? 4 * DAY : 0;
  let before = "";
  for (let place = Math.ceil((low - anchor) / step) * step + anchor; place <= high; place += step) {
    const [date, rest] = parts(place), day = `${date.getUTCDate()} ${names[date.getUTCMonth()]}`;
    const clock = step >= 60 * SECOND ? clockText(date, 0).slice(0, 5) : clockText(date, rest);
    found.push([place, step >= DAY ? day : day === before ? clock : `${day} ${clock}`]);
    before = day;
  }
  return found;
}
function numberTicks(low, high, most) {
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  const step = [1, 2, 5, 10].map((n) => n * power).find((step) => (high - low) / step <= most);
  const found = [];
  for (let at = Math.ceil(low / step); at <= Math.floor(high / step); at++) {
    const value = Number((at * step).toPrecision(12));
    found.push([value, numberText(value)]);
  }
  return found;
}
function axisTicks(axis, low, high) {
  if (!(high > low)) return [[0.5, axis.scale === "time" ? timeText(low) : numberText(low)]];
  const found = (axis.scale === "time" ? timeTicks : numberTicks)(low, high, 7);
  return found.map(([place, words]) => [Math.min(Math.max((place - low) / (high - low), 0), 1), words]);
}
function logTicks(unit, low, high) {
  let values = [1, 10, 100, 1e3, 1e4, 1e5, ...[1, 10, 60, 600, 3600, 21600].map((n) => n * SECOND)];
  values.push(...[1, 7, 30, 365, 3650, 36500].map((n) => n * DAY));
  if (unit !== "duration") {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    values = [];
    for (let power = first; power <= last; power += Math.max(1, Math.floor((last - first) / 8))) {
      for (const factor of last - first <= 3 ? [1, 2, 5] : [1]) values.push(factor * 10 ** power);
    }
  }
  const words = unit === "duration" ? durationText : numberText, span = Math.log(high / low);
  return values.filter((value) => value >= low && value <= high).map((value) => [Math.log(value / low) / span, words(value)]);
}


// ---- the head of the page ----------------------------------------------------------------------------------
function addHead() {
  const header = add(main, "header"), totals = report.totals, notes = report.notes;
  add(header, "p", "kind", { state: "State", range: "Results of a range", result: "Result" }[report.what]);
  add(header, "h1", "", report.path);
  add(header, "p", "spec", report.window);
  let text = `${count(totals["rows in"], "row")} of ${count(totals["input files"], "file")}`;
  text += ` (${bytesText(totals["input bytes"])})`;
  if ("windows" in totals) {
    text += ` became ${count(totals.windows, "window")}` + ("keys" in totals ? ` of ${count(totals.keys, "key")}` : "");
  }
  text += totals.rejected ? `; ${grouped(totals.rejected)} rows were rejected.` : "; no row was rejected.";
  if ("units" in totals) text += ` ${count(totals.units, "unit")}, ${count(totals.gaps, "gap")}.`;
  if (totals["open windows"]) text += ` ${count(totals["open windows"], "window")} still open.`;
  const total = report.phases.find(([name]) => name === "total");
  add(header, "p", "lead", total ? `${text} It took ${secondsText(total[1])}.` : text);
  if (!notes.length) return;
  const list = add(header, "ul", "notes", "", { "aria-label": "Notes" });
  for (const note of notes) add(list, "li", "", note);
}

// ---- counts over time: small pictures above each other along one axis ----------------------------------------
function addOverTime(found) {
  const parent = addSection("time", "Rows over time"), height = 44, top = 20, { axis, labels, series } = found;
  const none = series.filter((each) => !each.values.some(Boolean)).map((each) => each.name);
  const article = /^[a-z]/i.test(found.step) ? (found.step === "hour" ? "an " : "a ") : "";
  let text = `Each bar is ${article}${found.step}${axis ? ` of ${axis.name}` : ""}.`;
  if (none.length) text += ` There are no ${none.join(" and no ")}.`;
  add(parent, "p", "", `${text} ${found.apart}`.trim());
  const [low, high] = found.bounds, size = axis ? series[0].values.length : labels.length;
  function where(at) {
    if (!axis) return labels[at];
    const place = low + ((high - low) * at) / size;
    return `from ${axis.scale === "time" ? timeText(Math.round(place)) : placeText(place, axis)}`;
  }
  const figure = add(parent, "figure", "over-time");
  for (const { name, values, is_trouble } of series.filter((each) => each.values.some(Boolean))) {
    const most = largest(values), isLevel = name.startsWith("rows held");
    const words = isLevel ? name : `${name}: ${grouped(sum(values))}`;
    const told = `most ${grouped(most)}, ${where(values.indexOf(most))}`;
    const svg = addPicture(figure, "series", top + height + 4, `${words}; ${told}`);
    addLabel(svg, 0, 13, words, is_trouble ? "key trouble" : "key");
    addLabel(svg, 1, 13, told, "faint");
    const plot = addPlot(svg, top, height);
    add(plot, "path", "ground", "", { d: `M0 ${height - 0.5}H${WIDE}` });
    const step = WIDE / size, wide = step * (step > 3 ? 0.86 : 1);
    const bars = values.map((n, at) => {
      const tall = Math.max((n / most) * (height - 1), 1);
      return n ? uprightPath(at * step + (step - wide) / 2, height - 1, wide, tall) : "";
    });
    add(plot, "path", is_trouble ? "trouble" : isLevel ? "held" : "counts", "", { d: bars.join("") });
  }
  const ends = axis ? [placeText(low, axis), placeText(high, axis)] : found.bounds, every = Math.max(1, Math.ceil(size / 7));
  const units = labels.map((label, at) => [(at + 0.5) / size, label]).filter(([, label], at) => label && at % every === 0);
  addTicks(addPicture(figure, "ticks", 18, `from ${ends[0]} to ${ends[1]}`), axis ? axisTicks(axis, low, high) : units, 13);
  const rows = [...Array(size).keys()].filter((at) => series.some((each) => each.values[at]));
  addHiddenTable(figure, "These counts", [axis ? "from" : found.step, ...series.map((each) => each.name)],
    rows.map((at) => [where(at).replace(/^from /, ""), ...series.map((each) => grouped(each.values[at]))]));
}
function uprightPath(x, base, wide, tall) {
  return `M${x.toFixed(1)} ${base}v-${tall.toFixed(1)}h${wide.toFixed(1)}v${tall.toFixed(1)}z`;
}

// ---- how long windows are, how many rows they have, and why they ended ---------------------------------------
function addDistributions() {
  const section = addSection("distributions", "Distributions"), pair = add(section, "div", "pair"), reasons = report.reasons;
  if (report.lengths) addDistribution(pair, "Length of windows", report.lengths);
  if (report.sizes) addDistribution(pair, "Rows per window", report.sizes);
  if (!reasons.length) return;
  const whole = sum(reasons.map(([, n]) => n)), most = reasons[0][1], figure = add(section, "figure");
  add(figure, "h3", "", "Why windows ended");
  addBars(figure, "Windows by closed_by",
    reasons.slice(0, 20).map(([reason, n]) => [reason, grouped(n), shareText(n, whole), n / most, "counts"]));
}
function addDistribution(pair, name, found) {
  const figure = add(pair, "figure", "distribution"), { unit, bars } = found, height = 96, zeroWide = 56;
  add(figure, "h3", "", name);
  if (found.least === found.most) {
    add(figure, "p", "", `All ${grouped(found.count)} windows: ${measureText(found.most, unit)}.`);
    return;
  }
  const about = (value) => measureText(unit === "rows" && Number.isInteger(value) ? value : Number(value.toPrecision(3)), unit);
  const words = found.quantiles.map(([percent, value]) => `${percent === 50 ? "median" : `${percent} % up to`} ${about(value)}`);
  const most = unit === "rows" ? `most ${grouped(found.most)}` : `longest ${measureText(found.most, unit)}`;
  const text = `${words.join(", ")}; ${most}`;
  add(figure, "p", "faint", `${text}; mean ${about(found.total / found.count)}.`);
  const svg = addPicture(figure, "histogram", height + 22, `${name}: ${text}`), plot = addPlot(svg, 0, height);
  const left = found.zeros ? zeroWide : 0;  // the bar of zeros stands left of all others
  const low = bars.length ? bars[0].low : 1, high = bars.length ? bars[bars.length - 1].high : 1;
  const across = (value) => left + (Math.log(value / low) / Math.log(high / low)) * (WIDE - left);
  const drawn = bars.map((bar) => [across(bar.low), across(bar.high) - across(bar.low), bar.count]);
  if (found.zeros) drawn.unshift([0, zeroWide * 0.7, found.zeros]);
  const densest = largest(drawn.map(([, wide, n]) => n / wide));
  const paths = drawn.filter(([, , n]) => n).map(([x, wide, n]) =>
    uprightPath(x, height - 1, wide * 0.92, Math.max((n / wide / densest) * (height - 2), 1)));
  add(plot, "path", "counts", "", { d: paths.join("") });
  add(plot, "path", "ground", "", { d: `M0 ${height - 0.5}H${WIDE}` });
  for (const [percent, value] of found.quantiles) {
    if (bars.length && value >= low) {
      add(plot, "path", percent === 50 ? "median" : "quantile", "", { d: `M${across(value).toFixed(1)} 0V${height}` });
    }
  }
  const begin = left / WIDE;
  if (found.zeros) addLabel(svg, begin * 0.35, height + 15, "0", "", 0);
  const ticks = bars.length ? logTicks(unit, low, high).map(([share, words]) => [begin + share * (1 - begin), words]) : [];
  addTicks(svg, ticks.filter(([share]) => share > begin + 0.05 || !found.zeros), height + 15);
  const rows = bars.map((bar) => [measureText(bar.low, unit), measureText(bar.high, unit), grouped(bar.count)]);
  if (found.zeros) rows.unshift(["0", "", grouped(found.zeros)]);
  addHiddenTable(figure, name, ["from", "to below", "windows"], rows);
}

// ---- units: a calendar of what is done, missing, run again, and held -----------------------------------------
function addCalendar(calendar) {
  const { cells, kind, again } = calendar, grid = gridOf(calendar), total = (name) => sum(cells.map((cell) => cell[name]));
  const words = [`${count(total("done") + total("redone"), calendar.unit)} done`];
  if (total("redone")) words.push(`${grouped(total("redone"))} of them ${again}`);
  if (total("gaps")) words.push(`${grouped(total("gaps"))} without input`);
  let about = words.join(", ") + (cells.length < 2 ? "." : `, from ${cells[0].label} to ${cells[cells.length - 1].label}.`);
  if (kind !== calendar.unit) about += ` A cell is a ${kind}.`;
  if (calendar.hidden) about += ` ${grouped(calendar.hidden)} earlier cells are not shown.`;
  const section = addSection("units", "Units");
  add(section, "p", "", about);
  const figure = add(section, "figure", "calendar");
  addGrid(figure, calendar, grid, about);
  const legend = add(figure, "p", "legend");
  for (const [classes, meaning, isThere] of [
    ["s3", "done; the stronger, the more rows came in", true],
    ["s2 redone", again, cells.some((cell) => cell.redone)],
    ["gap", "no input", cells.some((cell) => cell.gaps && !isDone(cell))],
    ["s2 some", "some units have no input", cells.some((cell) => cell.gaps && cell.done)],
    ["held", "rows held, as long as the bar", grid.isLarge && cells.some((cell) => cell.held)],
    ["trouble", "has late rows", cells.some((cell) => cell.late)],
  ]) {
    if (!isThere) continue;
    const entry = add(legend, "span"), swatch = add(entry, "svg", "", "", { width: 14, height: 14, "aria-hidden": "true" });
    if (classes === "trouble") add(swatch, "circle", classes, "", { cx: 7, cy: 8, r: 3 });
    else if (classes === "held") add(swatch, "rect", classes, "", { x: 1, y: 6, width: 12, height: 4 });
    else add(swatch, "rect", `cell ${classes}`, "", { x: 1, y: 2, width: 12, height: 11 });
    add(entry, "span", "", meaning);
  }
  addHiddenTable(figure, "Units", [kind, "state", "rows in", calendar.out, "late", "other rejects", "held"], cells.map((cell) => {
    const states = [[cell.done, "done"], [cell.redone, "redone"], [cell.gaps, "gap"]].filter(([n]) => n);
    const counts = [cell.rows_in, cell.out, cell.late, cell.rejected, cell.held];
    const state = states.map(([n, word]) => (n === 1 ? word : `${n} ${word}`)).join(", ");
    return [cell.label, state, ...counts.map((n) => (isDone(cell) ? grouped(n) : ""))];
  }));
}
const isDone = (cell) => cell.done + cell.redone > 0;

// Where cells stand: the number of columns, labels of columns and rows, [row, column] of each cell, whether cells have
// room for words, and how many rows are a block, which stands apart from the next; 0: all rows are one.
function gridOf({ cells, kind }) {
  const first = cells.length ? cells[0].ordinal : 0, last = cells.length ? cells[cells.length - 1].ordinal : 0;
  if (kind === "day") {
    const weekOf = (ordinal) => Math.floor((ordinal + 3) / 7), monday = (week) => dayOf(week * 7 - 3);  // day 0 is a Thursday
    const weeks = weekOf(last) - weekOf(first) + 1;
    const places = cells.map(({ ordinal }) => [weekOf(ordinal) - weekOf(first), (((ordinal + 3) % 7) + 7) % 7]);
    if (last - first < 140) {
      const rows = [...Array(weeks).keys()].map((week) => dayText(monday(weekOf(first) + week)));
      const heads = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].map((day, at) => [at, day]);
      return { columns: 7, heads, rows, places, isLarge: true, apart: 0 };
    }
    const rows = [...Array(Math.ceil(weeks / 53) * 7).keys()];  // blocks of 53 weeks
    const labels = rows.map((row) => (row % 7 ? "" : monday(weekOf(first) + (row / 7) * 53).slice(0, 7)));
    const blocks = places.map(([week, day]) => [Math.floor(week / 53) * 7 + day, week % 53]);
    return { columns: 53, heads: [], rows: labels, places: blocks, isLarge: false, apart: 7 };
  }
  const columns = { hour: 24, week: 52, run: cells.length <= 60 ? 10 : 50 }[kind];
  const base = kind === "hour" ? first - (((first % 24) + 24) % 24) : first;
  const places = cells.map(({ ordinal }) => [Math.floor((ordinal - base) / columns), (ordinal - base) % columns]);
  const rows = Array(cells.length ? Math.floor((last - base) / columns) + 1 : 1).fill("");
  for (let at = cells.length - 1; at >= 0; at--) {
    const day = cells[at].label.split("T")[0], run = cells[at].label.replace(/^run-/, "").replace(/^0+/, "").slice(0, 7);
    rows[places[at][0]] = kind === "hour" ? dayText(day) : kind === "run" ? run : day.slice(0, 7);
  }
  const heads = kind === "hour" ? [0, 6, 12, 18].map((hour) => [hour, two(hour)]) : [];
  return { columns, heads, rows, places, isLarge: kind === "run" && cells.length <= 60, apart: 0 };
}
function addGrid(figure, { cells, kind, again }, grid, about) {
  const tall = grid.isLarge ? 46 : 14, top = grid.heads.length ? 16 : 0;
  const margin = grid.isLarge || kind === "hour" ? 0.13 : 0.09, wide = (1 - margin) / grid.columns;  // shares of the width
  const y = (row) => row * tall + (grid.apart ? Math.floor(row / grid.apart) * 8 : 0);
  const svg = addPicture(figure, "units", top + y(grid.rows.length) + 2, about), inner = grid.isLarge ? 0.97 : 0.88;
  for (const [column, text] of grid.heads) add(svg, "text", "faint", text, { x: percent(margin + column * wide), y: 11 });
  grid.rows.forEach((text, row) => add(svg, "text", "faint", text, { x: 0, y: top + y(row) + 11 }));
  const busiest = largest(cells.map((cell) => cell.rows_in)), fullest = largest(cells.map((cell) => cell.held));
  cells.forEach((cell, i) => {
    const [row, column] = grid.places[i], at = top + y(row), x = (share) => percent(margin + (column + share) * wide);
    const shade = busiest ? Math.min(4, Math.ceil((cell.rows_in * 4) / busiest)) : 0;
    const edge = cell.redone ? " redone" : cell.gaps ? " some" : "";
    const square = add(svg, "rect", isDone(cell) ? `cell s${shade}${edge}` : "cell gap", "",
      { x: x(0), y: at + 1, width: percent(wide * inner), height: tall - 3 });
    add(square, "title", "", `${cell.label}: ${wordsOf(cell, again)}`);
    if (cell.late) {
      const [right, below, radius] = grid.isLarge ? [0.88, 27, 3] : [0.7, 7, 2];
      add(svg, "circle", "trouble", "", { cx: x(right), cy: at + below, r: radius });
    }
    if (!grid.isLarge) return;
    const day = cell.label.length === 10 ? cell.label.slice(8) : cell.label.slice(-3);
    add(svg, "text", "day", day, { x: x(0.05), y: at + 14 });
    if (!isDone(cell)) {
      add(svg, "text", "faint", "gap", { x: x(0.05), y: at + 30 });
      return;
    }
    add(svg, "text", "", grouped(cell.rows_in), { x: x(0.05), y: at + 31 });
    if (cell.redone) add(svg, "text", "again", "\u21bb", { x: x(0.9), y: at + 15, "text-anchor": "end" });
    const width = percent((wide * inner * cell.held) / fullest);
    if (cell.held) add(svg, "rect", "held", "", { x: x(0), y: at + tall - 6, height: 4, width });
  });
}
function wordsOf(cell, again) {
  const states = [[cell.done, "done", "done"], [cell.redone, again, again], [cell.gaps, "gap", "gaps"]];
  const found = states.filter(([n]) => n).map(([n, one, several]) => (n === 1 ? one : `${n} ${several}`));
  if (isDone(cell)) found.push(`${grouped(cell.rows_in)} rows in`);
  const rows = [[cell.late, "late"], [cell.rejected, "rejected"], [cell.held, "held"]];
  return [...found, ...rows.filter(([n]) => n).map(([n, word]) => `${grouped(n)} ${word}`)].join(", ");
}

// ---- the account of each stage, the phases, and the job in words ---------------------------------------------
function addAccounts() {
  const section = addSection("account", "Account of rows"), accounts = report.accounts, words = report.words;
  for (const [name, account] of accounts) {
    const figure = add(section, "figure");
    if (accounts.length > 1) add(figure, "h3", "", `Stage ${name}`);
    const whole = account.rows_in + account.carried;
    const rejected = account.rejected.slice(0, 12);
    const parts = [
      [words.windowed, account.windowed, "counts"],
      [words.filtered, account.filtered, "counts"],
      ...rejected.map(([reason, n]) => [`${words.rejected}: ${reason}`, n, "trouble"]),
      [words.dropped_at_end, account.dropped_at_end, "trouble"],
      [words.held, account.held, "held"],
    ].filter(([what, n]) => n || what === words.windowed);
    const most = largest(parts.map(([, n]) => n)) || 1;
    let came = `${count(account.rows_in, "row")} in`;
    if (account.carried) came += ` + ${grouped(account.carried)} ${words.carried}`;
    addBars(figure, `${came}: ${account.balanced ? "every row is accounted for" : "this does not balance"}`,
      parts.map(([what, n, classes]) => [what, grouped(n), shareText(n, whole), n / most, classes]));
  }
  const more = report.stages - accounts.length;
  if (more) add(section, "p", "faint", `${grouped(more)} further stages are not shown.`);
}
function addPhases(phases) {
  const total = sum(phases.filter(([name]) => name === "total").map(([, spent]) => spent));
  const longest = largest(phases.map(([, spent]) => spent)) || 1;
  const rows = phases.map(([name, spent]) =>
    [name, secondsText(spent), shareText(spent, total), spent / longest, name === "total" ? "held" : "counts"]);
  addBars(addSection("phases", "Where the time went"), "Seconds by phase; phases may run side by side", rows);
}
function addJob() {
  const section = addSection("job", "The job in words"), words = add(section, "dl");
  let before = null;
  for (const [stage, text] of report.clauses) {
    if (stage !== before) add(words, "dt", "", stage);
    add(words, "dd", "", text);
    before = stage;
  }
  for (const [text, outcome] of report.expectations) {
    add(words, "dt", "", "expected");
    add(words, "dd", outcome.startsWith("holds") ? "" : "trouble", `${text}: ${outcome}`);
  }
  for (const [name, head, pairs] of [
    ["Further options", ["option", "value"], report.settings],
    ["Computed with", ["package", "version"], report.made_with],
  ]) {
    if (!pairs.length) continue;
    const details = add(section, "details");
    add(details, "summary", "", name);
    addTable(details, name, head, pairs, "words");
  }
}
