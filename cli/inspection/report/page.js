"use strict";
(() => {
  const WIDE = 1000, SECOND = 1e6, DAY = 864e8, MONTH = 30.4 * DAY;
  const data = JSON.parse(document.getElementById("data").textContent);
  const TALL = data.tall;
  const sheet = document.getElementById("sheet");
  const readout = document.getElementById("readout");
  const axis = sheet.querySelector("svg.ticks");
  const full = data.high > data.low ? [data.low, data.high] : [data.low - 0.5, data.high + 0.5];
  const finest = data.scale === "number" ? (full[1] - full[0]) / 1e9 : data.scale === "window" ? 2 : 20;
  let view = full.slice();
  let picked = null;

  const lanes = data.lanes.map((lane, at) => {
    let place = data.low;
    const starts = lane.starts.map((step) => (place += step));
    const svg = sheet.querySelector(`svg[data-lane="${at}"]`);
    return {
      ...lane, starts, svg,
      ends: starts.map((start, i) => start + lane.lengths[i]),
      windows: svg.querySelector(".windows"), heldBar: svg.querySelector(".held"), mark: svg.querySelector(".picked"),
    };
  });
  const unit = data.scale === "window" ? 1 : 0;

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
  function placeText(value) {
    if (data.scale !== "time") return numberText(value);
    const [date, rest] = parts(value);
    return `${dateText(date)} ${clockText(date, rest)}${data.utc ? " UTC" : ""}`;
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

  // ---- the axis ----------------------------------------------------------------------------------------------
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
  function drawAxis() {
    const [low, high] = view;
    const ticks = (data.scale === "time" ? timeTicks : numberTicks)(low, high, 7);
    axis.replaceChildren(...ticks.map(([place, words], at) => {
      const share = (place - low) / (high - low);
      const text = document.createElementNS(axis.namespaceURI, "text");
      text.setAttribute("x", `${(100 * share).toFixed(2)}%`);
      text.setAttribute("y", "14");
      text.setAttribute("text-anchor", share < 0.06 ? "start" : share > 0.94 ? "end" : "middle");
      if (at % 2) text.setAttribute("class", "odd");
      text.textContent = words;
      return text;
    }));
    axis.setAttribute("aria-label", `from ${placeText(Math.round(low))} to ${placeText(Math.round(high))}`);
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
    const tall = data.tallest ? Math.min(Math.max((lane.held[2] / data.tallest) * TALL, 1.5), TALL) : TALL * 0.6;
    return `M${x.toFixed(1)} ${(TALL - tall).toFixed(1)}h${wide.toFixed(1)}v${tall.toFixed(1)}h${(-wide).toFixed(1)}z`;
  }
  function columnPath(lane, i) {
    const [x, end] = across(lane.starts[i], lane.ends[i] + unit), wide = Math.max(end - x, 3);
    return `M${x.toFixed(1)} 0h${wide.toFixed(1)}v${TALL}h${(-wide).toFixed(1)}z`;
  }
  function barPath(lane, i) {
    const [x, end] = across(lane.starts[i], lane.ends[i] + unit);
    let tall = TALL * 0.6, top;
    if (data.tracks > 1) {
      tall = TALL / data.tracks - 0.8;
      top = (i % data.tracks) * (TALL / data.tracks);
    } else {
      if (lane.sizes && data.tallest) {
        tall = Math.max((lane.sizes[i] / (lane.counts ? lane.counts[i] : 1) / data.tallest) * TALL, 1.5);
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
    requestAnimationFrame(() => {
      isDue = false;
      drawAxis();
      for (const lane of lanes) {
        let path = "";
        for (let i = 0; i < lane.starts.length; i++) if (isSeen(lane, i)) path += barPath(lane, i);
        lane.windows.setAttribute("d", path);
        lane.heldBar.setAttribute("d", heldPath(lane));
      }
      drawPicked();
    });
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
    const who = lane.key || "all rows";
    if (i < 0) {
      readout.textContent = `${who}: no window here`;
    } else {
      const n = lane.counts ? lane.counts[i] : 1;
      const words = [`${who}: ${n === 1 ? "a window" : count(n, "window")}`];
      if (data.scale === "window") words.push(`number ${numberText(lane.starts[i])}`);
      else {
        const length = lane.ends[i] - lane.starts[i];
        words.push(`from ${placeText(lane.starts[i])} to ${placeText(lane.ends[i])}`);
        words.push(data.scale === "time" ? durationText(length) : `length ${numberText(length)}`);
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

  const acts = { in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25), all: () => look(...full) };
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
  document.getElementById("controls").addEventListener("click", (event) => {
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
  document.documentElement.classList.add("zooms");
})();
