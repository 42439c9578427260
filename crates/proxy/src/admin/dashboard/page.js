"use strict";
// What the admin interface measures, as charts and tables. Names come from strangers: they are
// only ever text of a node. Nothing here changes the proxy.

const HOUR = 3600, MINUTE = 60, WEEK = 7 * 24 * HOUR;
const POINTS = 300, TABLE_ROWS = 30, NAME_SIGNS = 120;
const VERDICTS = ["hit", "collapsed", "uri-miss", "vary-miss", "miss", "request", "stale", "partial",
  "bypass", "method", "refused", "error", "invalid", "tunnel", "local"];
const HITS = ["requests.hit"];
const FORWARDED = VERDICTS.slice(2, 10).map((word) => "requests." + word);
const OWN = ["requests.refused", "requests.error", "requests.invalid", "requests.local"];
const ALL = VERDICTS.map((word) => "requests." + word);

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes, ...children) {
  const node = document.createElement(name);
  return fill(node, attributes, children);
}
function draw(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// ---- numbers in words

function scaled(value, units, base) {
  let unit = 0;
  while (value >= base * 0.9995 && unit + 1 < units.length) { value /= base; unit += 1; }
  const text = unit === 0 || value >= 100 ? short(value) : value.toFixed(value >= 10 ? 1 : 2);
  return text + "\u00a0" + units[unit];
}
// a small site has a request in half a minute, and that is not none
function short(value) {
  if (value >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  if (value >= 1) return value.toFixed(value >= 10 ? 1 : 2);
  return value < 0.001 ? "<0.001" : String(Number(value.toPrecision(2)));
}
const bytes = (value) => scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"], 1000);
const rate = (value) => bytes(value) + "/s";
const micro = (value) => scaled(value, ["µs", "ms", "s"], 1000);
const share = (value) => (100 * value).toFixed(1) + "\u00a0%";
function count(value) {
  return value >= 1e6 ? scaled(value / 1e6, ["M", "G", "T"], 1000) : short(value);
}
const known = (value, format) => value === null || Number.isNaN(value) ? "–" : format(value);
function clock(at, step) {
  const date = new Date(1000 * at);
  const time = date.toLocaleTimeString([], { hour12: false });
  return step < MINUTE ? time : date.toLocaleDateString([], { weekday: "short" }) + " " + time.slice(0, 5);
}

// ---- what is known: for each series a ring of the hour and one of the week

const rings = { 1: { rows: HOUR, times: [], values: {} }, 60: { rows: WEEK / MINUTE, times: [], values: {} } };
let kinds = {}, names = [], totals = {}, latest = null;

function clear(step) {
  const ring = rings[step];
  ring.times = new Array(ring.rows).fill(0);
  for (const name of names) ring.values[name] = new Array(ring.rows).fill(null);
}
function put(step, at, values) {
  const ring = rings[step], place = Math.floor(at / step) % ring.rows;
  ring.times[place] = at;
  for (const name of names) ring.values[name][place] = values[name] === undefined ? null : values[name];
}
function value(step, name, at) {
  const ring = rings[step], place = Math.floor(at / step) % ring.rows;
  return ring.times[place] === at && ring.values[name] ? ring.values[name][place] : null;
}
// the sum of some series at a time; null if nothing is known
function sum(step, list, at) {
  let all = null;
  for (const name of list) {
    const one = value(step, name, at);
    if (one !== null) all = (all || 0) + one;
  }
  return all;
}
function sumOver(step, list, from, to) {
  let all = 0;
  for (let at = from - from % step; at < to; at += step) all += sum(step, list, at) || 0;
  return all;
}

// ---- charts

const per = (list) => (step, at) => { const all = sum(step, list, at); return all === null ? null : all / step; };
const gauge = (name) => (step, at) => value(step, name, at);
const part = (some, whole) => (step, at) => {
  const all = sum(step, whole, at);
  return all ? Math.min(1, Math.max(0, some(step, at) / all)) : null;
};
const savedShare = (step, at) => {
  const sent = sum(step, ["bytes.content-to-clients"], at), stored = sum(step, ["bytes.content-from-store"], at);
  return sent ? stored / sent : null;
};

const CHARTS = [
  { title: "Requests a second", format: count, lines: [["hits", per(HITS)], ["forwarded", per(FORWARDED)], ["waited for another", per(["requests.collapsed"])], ["answered by Weir, or refused", per(OWN)]] },
  { title: "Bytes a second", format: rate, lines: [["to clients", per(["bytes.to-clients"])], ["from next hops", per(["bytes.from-next-hops"])], ["wasted", per(["bytes.wasted"])]] },
  { title: "Hit ratio", format: share, most: 1, lines: [["of requests", part((step, at) => sum(step, HITS, at) || 0, ALL)], ["of bytes", savedShare]] },
  { title: "Response time", format: micro, log: true, lines: [["hits, median", gauge("time.hit.p50")], ["forwarded, median", gauge("time.miss.p50")], ["hits, 99 %", gauge("time.hit.p99")], ["forwarded, 99 %", gauge("time.miss.p99")]] },
  { title: "Open connections", format: count, lines: [["of clients", gauge("clients-open")], ["to next hops", gauge("next-hops-open")], ["of these idle", gauge("next-hops-idle")]] },
  { title: "Memory and disk", format: bytes, lines: [["memory", gauge("store.used-bytes")], ["memory, budget", gauge("store.budget-bytes")], ["disk", gauge("disk.used-bytes")], ["disk, budget", gauge("disk.budget-bytes")]] },
  { title: "Stored and evicted a second", format: count, lines: [["stored", per(["stored"])], ["evicted from memory", per(["evicted"])], ["evicted from disk", per(["disk.evicted"])]] },
  { title: "Errors a second", format: count, lines: [["next hops failed", per(["next-hop.errors"])], ["next hops late", per(["next-hop.timeouts"])], ["clients left", per(["client-aborts"])], ["5xx to clients", per(["responses.5xx"])]] },
  { title: "Largest read-ahead", format: bytes, lines: [["since the start", gauge("read-ahead.max-bytes")]] },
];

const WIDTH = 400, HEIGHT = 170, LEFT = 62, RIGHT = 6, TOP = 8, BOTTOM = 22;

class Chart {
  constructor(spec, number, into) {
    this.spec = spec;
    this.cursor = null;
    const id = "chart" + number;
    const keys = spec.lines.map(([label], index) => make("li", null,
      draw("svg", { viewBox: "0 0 24 12", "aria-hidden": "true" }, draw("path", { d: "M0 6H24", class: "line s" + index })), label));
    this.title = draw("title", { id: id + "-title" });
    this.body = draw("g");
    const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-labelledby": id + "-title" }, this.title, this.body);
    this.plot = make("div", { class: "plot", tabindex: "0", role: "group", "aria-label": spec.title + ": arrow keys move to a time" }, picture);
    this.output = make("output");
    this.table = make("div", { class: "scroll" });
    this.details = make("details", null, make("summary", null, "Table: " + spec.title), this.table);
    this.details.addEventListener("toggle", () => this.fillTable());
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.plot.addEventListener("blur", () => this.point(null));
    this.plot.addEventListener("pointermove", (event) => this.hover(event));
    this.plot.addEventListener("pointerleave", () => this.point(null));
    $(into).append(make("figure", null,
      make("figcaption", null, make("h3", null, spec.title)),
      this.plot, make("ul", { class: "keys" }, ...keys), this.output, this.details));
  }

  // so many columns of at most POINTS, each with mean, least and most of its seconds
  read(range, now) {
    const step = range > HOUR ? MINUTE : 1;
    const wide = Math.max(step, Math.ceil(range / POINTS / step) * step);
    const end = now - now % wide;
    this.step = step;
    this.times = [];
    for (let at = end - range; at < end; at += wide) this.times.push(at);
    this.columns = this.spec.lines.map(([, read]) => this.times.map((begin) => {
      let all = 0, seen = 0, least = Infinity, most = -Infinity;
      for (let at = begin - begin % step; at < begin + wide; at += step) {
        const one = read(step, at);
        if (one === null) continue;
        all += one; seen += 1; least = Math.min(least, one); most = Math.max(most, one);
      }
      return seen ? { mean: all / seen, least, most } : null;
    }));
  }

  refresh(range, now) {
    this.read(range, now);
    const all = this.columns.flat().filter(Boolean);
    const { format, log } = this.spec;
    const most = Math.max(0, ...all.map((one) => one.most));
    const top = this.spec.most || nice(log ? Math.max(1, most) : most || 1, log);
    const low = log ? Math.max(1, 10 ** Math.floor(Math.log10(Math.max(1, Math.min(...all.map((one) => one.least), top / 10))))) : 0;
    const y = (value) => {
      const part = log ? Math.log(Math.max(value, low) / low) / Math.log(top / low) : value / top;
      return (HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)).toFixed(1);
    };
    this.x = (index) => LEFT + (index + 0.5) * (WIDTH - LEFT - RIGHT) / this.times.length;
    const parts = [];
    for (const mark of log ? powers(low, top) : [0, top / 2, top]) {
      parts.push(draw("path", { class: "grid", d: `M${LEFT} ${y(mark)}H${WIDTH - RIGHT}` }),
        draw("text", { class: "mark end", x: LEFT - 6, y: Number(y(mark)) + 4 }, format(mark)));
    }
    const last = this.times.length - 1;
    for (const [index, anchor] of [[0, ""], [last, " end"]]) {
      parts.push(draw("text", { class: "mark" + anchor, x: this.x(index).toFixed(1), y: HEIGHT - 6 }, clock(this.times[index], this.step)));
    }
    this.columns.forEach((column, line) => {
      if (range > HOUR || this.times.length < range) parts.push(draw("path", { class: "band f" + line, d: this.band(column, y) }));
      parts.push(draw("path", { class: "line s" + line, d: this.path(column, y) }));
    });
    this.pointer = draw("path", { class: "cursor" });
    parts.push(this.pointer);
    this.body.replaceChildren(...parts);
    this.title.textContent = this.spec.title + ". " + this.spec.lines.map(([label], line) => {
      const seen = this.columns[line].filter(Boolean);
      if (!seen.length) return label + ": nothing";
      const mean = seen.reduce((all, one) => all + one.mean, 0) / seen.length;
      return `${label}: mean ${format(mean)}, most ${format(Math.max(...seen.map((one) => one.most)))}`;
    }).join("; ");
    if (this.cursor !== null) this.point(Math.min(this.cursor, last), true);
    if (this.details.open && latest % 10 === 0) this.fillTable();
  }

  path(column, y) {
    let path = "", joined = false;
    column.forEach((one, index) => {
      if (!one) { joined = false; return; }
      const alone = !joined && !column[index + 1];
      path += (joined ? "L" : "M") + this.x(index).toFixed(1) + " " + y(one.mean) + (alone ? "h1" : "");
      joined = true;
    });
    return path;
  }

  band(column, y) {
    let path = "", from = 0;
    while (from < column.length) {
      if (!column[from]) { from += 1; continue; }
      let to = from;
      while (column[to + 1]) to += 1;
      const there = [], back = [];
      for (let index = from; index <= to; index += 1) {
        there.push(this.x(index).toFixed(1) + " " + y(column[index].most));
        back.unshift(this.x(index).toFixed(1) + " " + y(column[index].least));
      }
      path += "M" + there.concat(back).join("L") + "Z";
      from = to + 1;
    }
    return path;
  }

  key(event) {
    const last = this.times.length - 1, now = this.cursor === null ? last + 1 : this.cursor;
    const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 30, PageDown: now + 30, Home: 0, End: last };
    if (event.key === "Escape") { this.point(null); return; }
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.point(Math.min(last, Math.max(0, moves[event.key])));
  }

  hover(event) {
    const box = this.plot.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * WIDTH;
    const index = Math.floor((at - LEFT) / (WIDTH - LEFT - RIGHT) * this.times.length);
    this.point(index >= 0 && index < this.times.length ? index : null);
  }

  // shows the values at a column; a screen reader hears them
  point(index, quiet) {
    this.cursor = index;
    if (!this.pointer) return;
    if (index === null) { this.pointer.removeAttribute("d"); this.output.textContent = ""; return; }
    const x = this.x(index).toFixed(1);
    this.pointer.setAttribute("d", `M${x} ${TOP}V${HEIGHT - BOTTOM}`);
    if (quiet) return;
    const values = this.spec.lines.map(([label], line) => {
      const one = this.columns[line][index];
      return label + " " + known(one && one.mean, this.spec.format);
    });
    this.output.textContent = clock(this.times[index], this.step) + ": " + values.join(", ");
  }

  fillTable() {
    if (!this.details.open || !this.times) return;
    const head = make("tr", null, ...["Time", ...this.spec.lines.map(([label]) => label)].map((label) => make("th", { scope: "col" }, label)));
    const wide = Math.ceil(this.times.length / TABLE_ROWS), rows = [];
    for (let from = this.times.length - wide; from >= 0; from -= wide) {
      const cells = this.columns.map((column) => {
        const seen = column.slice(from, from + wide).filter(Boolean);
        const mean = seen.length ? seen.reduce((all, one) => all + one.mean, 0) / seen.length : null;
        return make("td", null, known(mean, this.spec.format));
      });
      if (cells.every((cell) => cell.textContent === "–")) continue;
      rows.push(make("tr", null, make("th", { scope: "row" }, clock(this.times[from], this.step)), ...cells));
    }
    if (!rows.length) rows.push(empty(this.columns.length + 1, "Nothing is known."));
    this.table.replaceChildren(make("table", null, make("thead", null, head), make("tbody", null, ...rows)));
  }
}

function nice(value, log) {
  const power = 10 ** Math.floor(Math.log10(value));
  if (log) return power * 10;
  return power * [1, 2, 5, 10].find((factor) => value <= factor * power * 1.0001);
}
function powers(low, top) {
  const all = [];
  for (let mark = low; mark <= top * 1.0001; mark *= 10) all.push(mark);
  return all.length > 5 ? all.filter((_, index) => index % 2 === 0) : all;
}

const charts = CHARTS.map((spec, index) => new Chart(spec, index, "charts"));

// links have names that the proxy tells; four lines can be told apart in a chart
let linkCharts = [], chartedLinks = "";
function chartLinks() {
  const links = names.filter((one) => one.startsWith("link."));
  if (links.join() === chartedLinks) return;
  chartedLinks = links.join();
  $("link-charts").replaceChildren();
  linkCharts = [];
  for (let from = 0; from < links.length; from += 4) {
    const some = links.slice(from, from + 4);
    const title = "Bytes a second over links" + (links.length > 4 ? `, ${from + 1} to ${from + some.length}` : "");
    const lines = some.map((one) => [one.slice("link.".length), per([one])]);
    linkCharts.push(new Chart({ title, format: rate, lines }, CHARTS.length + from, "link-charts"));
  }
}

// ---- tables

function name(text) {
  const signs = Array.from(text);
  if (signs.length <= NAME_SIGNS) return make("bdi", null, text);
  return make("details", null,
    make("summary", null, make("bdi", null, signs.slice(0, NAME_SIGNS).join("") + "…")), make("bdi", null, text));
}
const cell = (text, kind) => make("td", kind ? { class: kind } : null, text);
// puts rows into a table; where there is no room side by side, each value has the title of its column,
// and the roles say what the display hides
function list(id, rows) {
  const body = $(id), table = body.parentNode;
  const titles = Array.from(table.tHead.rows[0].cells, (one) => one.textContent);
  for (const row of rows) {
    row.setAttribute("role", "row");
    Array.from(row.cells).forEach((one, index) => {
      one.setAttribute("role", one.tagName === "TH" ? "rowheader" : "cell");
      if (index) one.dataset.title = titles[index];
    });
  }
  body.replaceChildren(...rows);
}
const empty = (columns, text) => make("tr", null, make("td", { colspan: columns, class: "text" }, text));

function savings(label, of) {
  const all = ALL.reduce((sum, one) => sum + of(one), 0);
  const sent = of("bytes.to-clients"), taken = of("bytes.from-next-hops");
  const content = of("bytes.content-to-clients"), stored = of("bytes.content-from-store");
  // content alone: what Weir adds or answers itself was never to come from a next hop
  const saved = stored - of("bytes.wasted");
  return make("tr", null, make("th", { scope: "row" }, label), cell(count(all)),
    cell(all ? share(of("requests.hit") / all) : "–"), cell(content ? share(stored / content) : "–"),
    cell(bytes(sent)), cell(bytes(taken)), cell((saved < 0 ? "−" : "") + bytes(Math.abs(saved))));
}

function showSavings(now) {
  const midnight = new Date(1000 * now);
  midnight.setHours(0, 0, 0, 0);
  const today = midnight.getTime() / 1000, minute = now - now % MINUTE;
  list("savings", [
    savings("Last minute", (one) => sumOver(1, [one], now - MINUTE, now)),
    savings("Today", (one) => sumOver(60, [one], today, minute) + sumOver(1, [one], Math.max(minute, today), now)),
    savings("Since the start", (one) => totals[one] || 0)]);
}

function showReasons(range, now) {
  const step = range > HOUR ? MINUTE : 1;
  const rows = names.filter((one) => one.startsWith("not-stored.")).map((one) => ({
    word: one.slice("not-stored.".length), lately: sumOver(step, [one], now - range, now), ever: totals[one] || 0 }));
  rows.sort((a, b) => b.lately - a.lately || b.ever - a.ever);
  const shown = rows.filter((row) => row.ever > 0 || row.lately > 0);
  list("reasons", [...shown.map((row) =>
    make("tr", null, make("th", { scope: "row" }, row.word), cell(count(row.lately)), cell(count(row.ever)))),
    ...(shown.length ? [] : [empty(3, "Everything that came was stored, or nothing came.")])]);
}

let token = "";
async function ask(path) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  const answer = await fetch(path, { headers, cache: "no-store" });
  if (answer.status === 401) {
    $("key").hidden = false;
    throw new Error(token ? "the token at the end of this page is not the right one." : "enter the token at the end of this page.");
  }
  if (!answer.ok) throw new Error((await answer.text()).trim() || "status " + answer.status);
  return answer.json();
}

async function showTop() {
  const of = $("top-of").value, by = $("top-by").value;
  try {
    const table = await ask(`/top?of=${of}&by=${by}&n=20`);
    if (of !== $("top-of").value || by !== $("top-by").value) return;
    const format = table.unit === "bytes" ? bytes : count;
    const certain = table.rows.filter((row) => row.certain);
    list("top", [...certain.map((row) => make("tr", null, make("th", { scope: "row", class: "text name" }, name(row.name)),
      cell(format(row.count)), cell(format(row.count - row.error)), cell(share(table.total ? row.count / table.total : 0)))),
      ...(certain.length ? [] : [empty(4, table.total ? "None is heavy: each has less than " + share(Math.min(1, table.resolution / table.total)) + " of all." : "Nothing was counted yet.")])]);
    $("top-note").textContent = `Of ${format(table.total)} ${table.unit === "bytes" ? "" : table.unit + " "}lately; counts are halved each ${table.halving_s / 60} minutes. What is not listed has at most ${format(table.unlisted_max)}.`;
  } catch (error) {
    list("top", [empty(4, "Not shown: " + error.message)]);
    $("top-note").textContent = "";
  }
}

async function showMisses() {
  try {
    const { misses, why_meanings: whys, reason_meanings: reasons } = await ask("/misses");
    list("misses", [...misses.slice(0, 20).map((miss) => make("tr", null,
      make("th", { scope: "row" }, clock(Math.floor(miss.at_unix_ms / 1000), 1)), cell(miss.why, "text"), cell(miss.refused || miss.not_stored || "", "text"),
      cell(String(miss.status || "–")), cell(miss.client, "text"),
      make("td", { class: "text name" }, make("bdi", null, miss.method), " ", name(miss.url)))),
      ...(misses.length ? [] : [empty(6, "No request was forwarded or refused.")])]);
    $("miss-words").replaceChildren(...[...whys, ...reasons].flatMap(({ word, about }) => [make("dt", null, word), make("dd", null, about)]));
  } catch (error) {
    list("misses", [empty(6, "Not shown: " + error.message)]);
    $("miss-words").replaceChildren();
  }
}

// ---- the connection

let range = 300, lostSince = null, started = null;

function show(now) {
  if (latest === null) return;
  showSavings(latest);
  // a long range changes little in a second
  if (range <= HOUR / 12 || latest % 5 === 0 || now) [...charts, ...linkCharts].forEach((chart) => chart.refresh(range, latest));
  if (latest % 2 === 0) showReasons(range, latest);
}
async function showHops() {
  try {
    const hops = (await ask("/next-hops")).next_hops;
    $("hops").hidden = !hops.length;
    list("hop-rows", hops.map((hop) => {
      const left = hop.ejected_for_s === null ? "" : hop.ejected_for_s ? `, ${hop.ejected_for_s} s more` : ", to be tried";
      return make("tr", null, make("th", { scope: "row", class: "text name" }, name(hop.url)), cell(hop.kind, "text"),
        cell((hop.state === "spent" ? "link spent" : hop.state) + left, hop.state === "in" ? "text" : "text bad"), cell(count(hop.outstanding)));
    }));
  } catch (error) {
    list("hop-rows", [empty(4, "Not shown: " + error.message)]);
  }
}
async function showLinks() {
  try {
    const links = (await ask("/links")).links;
    $("links").hidden = !links.length;
    list("link-rows", links.map((link) => {
      const quota = link.quota;
      const spent = quota ? make("td", quota.is_spent ? { class: "bad" } : null, make("meter", { max: quota.bytes, high: 0.9 * quota.bytes, value: quota.spent_bytes, "aria-hidden": "true" }), " ", bytes(quota.spent_bytes), ", ", share(quota.spent_bytes / quota.bytes)) : cell("–");
      const state = [[quota && quota.is_spent, "quota spent"], [link.is_in_window, "in a window"], [link.is_free, "free"], [link.is_after_clock_step, "clock step"]].filter(([holds]) => holds).map(([, word]) => word).join(", ");
      const day = (at) => cell(quota ? new Date(1000 * at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "", "text");
      return make("tr", null, make("th", { scope: "row", class: "text name" }, name(link.name)), cell(state || "as always", quota && quota.is_spent ? "text bad" : "text"), cell(known(link.rate_bytes_s, rate)),
        cell(bytes(link.received_bytes)), cell(bytes(link.sent_bytes)), cell(quota ? bytes(quota.bytes) : "–"), spent, cell(quota ? bytes(quota.booked_bytes) : "–"),
        day(quota && quota.begin_unix_s), day(quota && quota.end_unix_s), cell(quota ? quota.when_spent : "", "text"), cell(micro(1000 * link.waited_ms)), cell(count(link.refused)));
    }));
  } catch (error) {
    list("link-rows", [empty(13, "Not shown: " + error.message)]);
  }
}
async function showCertificates() {
  try {
    const all = (await ask("/certificates")).certificates;
    $("certificates").hidden = !all.length;
    list("certificate-rows", all.map((one) => {
      const day = (at) => new Date(1000 * at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
      const ends = one.end_unix_s === null ? "none yet" : day(one.end_unix_s), last = one.last_order;
      const over = one.end_unix_s === null || 1000 * one.end_unix_s < Date.now();
      return make("tr", null, make("th", { scope: "row", class: "text name" }, name(one.names.join(", ") || "no name")), cell(name(one.listener), "text"), cell(name(one.from), "text"),
        cell(ends, over ? "text bad" : "text"), cell(one.order_unix_s === null ? "" : day(one.order_unix_s), "text"),
        cell(one.failures === null ? "–" : count(one.failures), one.failures ? "bad" : ""), cell(last ? `${day(last.at_unix_s)}, ${last.end}` + (last.reason ? ": " + last.reason : "") : "", "text"));
    }));
  } catch (error) {
    list("certificate-rows", [empty(7, "Not shown: " + error.message)]);
  }
}
function showNames() { showTop(); showMisses(); showHops(); showLinks(); showCertificates(); }

function state(text, lost) {
  $("state").textContent = text;
  document.body.classList.toggle("lost", lost);
}

function say() {
  const all = sumOver(1, ALL, latest - MINUTE, latest), hits = sumOver(1, HITS, latest - MINUTE, latest);
  $("spoken").textContent = all ? `Last minute: ${count(all)} requests, ${share(hits / all)} hits, ${bytes(sumOver(1, ["bytes.from-next-hops"], latest - MINUTE, latest))} from next hops.` : "No requests in the last minute.";
}

function take(sample) {
  const values = {};
  names.forEach((one, index) => { values[one] = sample.values[index]; totals[one] = sample.totals[index]; });
  if (sample.values.some((one) => one !== null)) put(1, sample.at_s - 1, values);
  latest = sample.at_s;
  // the row of the minute, until the next load has the true one
  const minute = latest - 1 - (latest - 1) % MINUTE, made = {};
  for (const one of names) {
    made[one] = kinds[one] === "count" ? sumOver(1, [one], minute, latest) : values[one];
  }
  if (minute > lastMinute) put(60, minute, made);
  state(`Since ${clock(Math.floor(started / 1000), MINUTE)}, now ${clock(latest, 1)}`, false);
  if (!document.hidden) show();
  if (latest % 5 === 0 && !document.hidden) showNames();
  if (latest % MINUTE === 0) say();
}

let lastMinute = 0;
async function load() {
  const live = await ask("/live");
  names = live.series.map((one) => one.name);
  kinds = Object.fromEntries(live.series.map((one) => [one.name, one.kind]));
  started = live.started_unix_ms;
  chartLinks();
  $("about").textContent = "Weir " + live.weir;
  for (const [step, word] of [[1, "1s"], [60, "1min"]]) {
    const table = await ask("/history?step=" + word);
    clear(step);
    const length = table.columns.length ? table.columns[0].length : 0;
    for (let row = 0; row < length; row += 1) {
      const values = {};
      let any = false;
      table.series.forEach((one, column) => {
        values[one.name] = table.columns[column][row];
        any = any || values[one.name] !== null;
      });
      if (any) {
        put(step, table.from_s + row * step, values);
        if (step === 60) lastMinute = table.from_s + row * step;
      }
    }
  }
  take(live.sample);
  show(true);
  showReasons(range, latest);
  showNames();
}

async function follow() {
  let wait = 1;
  for (;;) {
    try {
      const stop = new AbortController();
      const answer = await fetch("/events", { headers: { Accept: "text/event-stream" }, cache: "no-store", signal: stop.signal });
      if (!answer.ok) throw new Error((await answer.text()).trim());
      await load();
      wait = 1;
      lostSince = null;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        // a proxy that stands still closes nothing
        const late = setTimeout(() => stop.abort(), 10000);
        const { value: piece, done } = await reader.read();
        clearTimeout(late);
        if (done) throw new Error("the connection was closed");
        text += piece;
        const events = text.split("\n\n");
        text = events.pop();
        for (const event of events) if (event.startsWith("data: ")) take(JSON.parse(event.slice(6)));
      }
    } catch (error) {
      lostSince = lostSince || new Date();
      state(`Not reached since ${lostSince.toLocaleTimeString([], { hour12: false })}: ${error.message}. Trying again.`, true);
      await new Promise((done) => setTimeout(done, 1000 * wait));
      wait = Math.min(30, 2 * wait);
    }
  }
}

$("ranges").addEventListener("change", (event) => { range = Number(event.target.value); show(true); if (latest !== null) showReasons(range, latest); });
$("top-of").addEventListener("change", showTop);
$("top-by").addEventListener("change", showTop);
$("top-form").addEventListener("submit", (event) => event.preventDefault());
$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  $("token").value = "";
  $("key").hidden = true;
  showNames();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) { show(true); showNames(); } });
follow();
