// Numbers and times as people read them.

const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 0.0123, 4.2, 1,234, 218 K, 4.9 M. */
export function num(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${few.format(value / 1e9)} G`;
  if (size >= 1e6) return `${few.format(value / 1e6)} M`;
  if (size >= 1e4) return `${few.format(value / 1e3)} K`;
  if (size >= 1000 || Number.isInteger(value)) return whole.format(value);
  return size !== 0 && size < 1e-5 ? value.toExponential(1) : few.format(value);
}

/** All digits of a whole number. */
export const full = (value) => (Number.isFinite(value) ? whole.format(value) : "–");

export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["KB", 1e3]])
    if (Math.abs(value) >= size) return `${few.format(value / size)} ${unit}`;
  return `${whole.format(value)} B`;
}

export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  return share >= 0.01 || share === 0 ? `${Math.round(share * 100)} %` : `${(share * 100).toPrecision(1)} %`;
}

/** A length of time: 0.8 ms, 38 ms, 1.3 s, 2 min 5 s. */
export function lasting(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${num(seconds * 1e6)} µs`;
  if (size < 1) return `${few.format(seconds * 1e3)} ms`;
  if (size < 100) return `${few.format(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A text of the engine as it is shown: with arrows, and numbers with units that people read. */
export function plain(text) {
  return String(text ?? "").replaceAll("->", "→")
    .replace(/(\d[\d.,]*(?:e[+-]?\d+)?) us\b/g, (_, value) => lasting(Number(value.replaceAll(",", "")) / 1e6))
    .replace(/\d[\d.]*e\+\d+/g, (value) => num(Number(value)))
    .replace(/\b1 (batch|slot|row|group)(e?s)\b/g, "1 $1");
}

/** The same as `clock`; below a minute with tenths: 0:07.3. */
export const exactly = (seconds) => (seconds < 59.95 ? `0:${seconds.toFixed(1).padStart(4, "0")}` : clock(seconds));

/** A time of the run: 0:07, 1:25, 1:02:25. */
export function clock(seconds) {
  const all = Math.max(0, Math.floor(seconds)), minutes = Math.floor(all / 60) % 60, hours = Math.floor(all / 3600);
  const two = (n) => String(n).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(all % 60)}` : `${minutes}:${two(all % 60)}`;
}

/** The time on the wall at a time of the run. */
export function wall(run, seconds) {
  const began = Date.parse(run?.began ?? "");
  return Number.isNaN(began) ? "" : new Date(began + seconds * 1000).toLocaleTimeString();
}

/** Microseconds since 1970 as text, in UTC. */
export function stamp(us) {
  if (!Number.isFinite(us) || Math.abs(us) > 8.6e18) return "–";
  return new Date(us / 1000).toISOString().replace("T", " ").slice(0, 19);
}

/** A measured value with its unit, which its name tells. */
export function valued(name, value) {
  if (typeof value !== "number") return String(value ?? "–");
  if (/\bus\b|microsecond/.test(name)) return lasting(value / 1e6);
  if (/cpu/.test(name)) return `${num(value)} of a core`;
  if (/bytes|memory|amount|held|free|growth/.test(name) && Math.abs(value) >= 1000) return bytes(value);
  if (/second|longest|duration|late\b|wait/.test(name)) return lasting(value);
  if (/^rate |rows\/s|a second/.test(name)) return `${num(value)} rows/s`;
  if (/share/.test(name) && value <= 1) return percent(value);
  return num(value);
}

const NAMES = {
  cpu: "CPU", memory: "memory", plans: "plans looked at", longest: "longest pause", amount: "load that moves",
  seconds: "measured over", "us per tuple": "time for a row, rest of the route", "cpu us per row": "CPU a row, all slots, measured",
  "rows/s": "rows a second, measured", duration: "length, in event time",
  "move seconds": "CPU of the move", "move duration": "length of the move, in event time", "move longest": "longest pause of the move",
  "move rows": "rows that are moved", "move tuples": "results that are made for it", "move bytes": "memory for it",
};

/** The name of a measured value in words. */
export const named = (name) => NAMES[name] ?? name.replace(/^rate (.*)/, "rate of $1, per second of event time").replace(/_/g, " ");
