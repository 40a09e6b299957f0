// Formatting of numbers and units.
const NONE = "–";

function group(text) {
  const [whole, fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? grouped : grouped + "." + fraction;
}

// About `digits` significant digits, with thousands separators.
function number(value, digits = 4) {
  if (value === null || value === undefined || !isFinite(value)) return NONE;
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return group(String(value));
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e15) return value.toExponential(2);
  const places = Math.max(0, Math.min(8, digits - 1 - Math.floor(Math.log10(size))));
  const text = value.toFixed(places);
  return group(places > 0 ? text.replace(/\.?0+$/, "") : text);
}

const UNITS = {
  ns: [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"], [3.6e12, "h"]],
  s: [[1e-6, "µs"], [1e-3, "ms"], [1, "s"], [3600, "h"], [86400, "d"]],
  bytes: [[1, "B"], [1024, "KiB"], [1048576, "MiB"], [1073741824, "GiB"], [1099511627776, "TiB"]],
  iops: [[1, "/s"], [1e3, "k/s"], [1e6, "M/s"]],
  rate: [[1, "B/s"], [1e3, "kB/s"], [1e6, "MB/s"], [1e9, "GB/s"]],
  joules: [[1e-6, "µJ"], [1e-3, "mJ"], [1, "J"], [1e3, "kJ"], [1e6, "MJ"]],
};

// The largest unit not above `value`.
function unitFor(kind, value) {
  const units = UNITS[kind];
  let best = units[0];
  for (const unit of units) if (unit[0] <= value) best = unit;
  return best;
}

function quantity(kind, value, digits = 3) {
  if (value === null || value === undefined || !isFinite(value)) return NONE;
  const [scale, name] = value === 0 ? [1, kind === "bytes" ? "B" : kind === "ns" ? "ns" : ""] : unitFor(kind, Math.abs(value));
  return (number(value / scale, digits) + " " + name).trim();
}

function percent(share, digits = 3) {
  return share === null || share === undefined ? NONE : number(share * 100, digits) + " %";
}

// 0.001 as "0.1 %", for ticks of a logarithmic axis.
function share(value) {
  const exponent = Math.floor(Math.log10(value * 100) + 1e-9);
  return (value * 100).toFixed(Math.max(0, -exponent)) + " %";
}

function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

const words = text => text.replaceAll("_", " ");

// Round powers of ten between `low` and `high`.
function logTicks(low, high, most = 7) {
  if (!(low > 0 && high > low && high < Infinity)) return [];
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most)), ticks = [];
  const leads = last - first < 2 ? [1, 2, 5] : [1];
  for (let exponent = first - 1; exponent <= last; exponent++) {
    if ((last - exponent) % step !== 0) continue;
    for (const lead of leads) {
      const value = lead * 10 ** exponent;
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push(value);
    }
  }
  return ticks;
}
