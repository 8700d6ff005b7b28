// Numbers over time in flat arrays, so that hours of samples take a few megabytes.
// Invariant: at most `most` samples are kept. Counters are totals, so leaving out a sample loses no row of a rate.

export class Columns {
  constructor(names, most = 9000) {
    this.names = names;
    this.most = most;
    this.size = 0;
    this.room = 256;
    this.data = Object.fromEntries(["t", ...names].map((name) => [name, new Float64Array(this.room)]));
  }

  /** Adds a sample; what is missing is NaN. */
  add(t, values) {
    if (this.size && t < this.data.t[this.size - 1]) return;
    if (this.size >= this.most) this.thin();
    if (this.size >= this.room) this.grow();
    this.data.t[this.size] = t;
    for (const name of this.names) this.data[name][this.size] = values[name] ?? NaN;
    this.size += 1;
  }

  grow() {
    this.room = Math.min(this.room * 2, this.most);
    for (const [name, old] of Object.entries(this.data)) {
      this.data[name] = new Float64Array(this.room);
      this.data[name].set(old);
    }
  }

  /** Of the older half every second sample is left out. */
  thin() {
    const half = this.size >> 1, kept = half >> 1;
    for (const column of Object.values(this.data)) {
      for (let i = 0; i < kept; i++) column[i] = column[2 * i + 1];
      column.copyWithin(kept, 2 * kept, this.size);
    }
    this.size -= kept;
  }

  /** The place of the last sample at or before a time; -1 if there is none. */
  at(t) {
    let low = 0, high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.data.t[middle] <= t) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** A value at a time. */
  value(name, t) {
    const place = this.at(t);
    return place < 0 ? NaN : this.data[name][place];
  }

  /** The growth of a total per second, at a time, between the last two samples: what a chart draws there. */
  rate(name, t) {
    const end = this.at(t);
    return end < 0 ? NaN : (this.series(name, [end], true)[0] ?? NaN);
  }

  /** Places of at most `points` samples between two times, and one beyond each end. */
  places(from, to, points) {
    const begin = Math.max(0, this.at(from)), end = Math.min(this.size - 1, this.at(to) + 1);
    const step = Math.max(1, Math.ceil((end - begin + 1) / points)), found = [];
    for (let i = begin; i < end; i += step) found.push(i);
    if (end >= begin && this.size) found.push(end);
    return found;
  }

  /** A series for a chart: values, or rates of totals. */
  series(name, places, isRate) {
    const { t } = this.data, column = this.data[name];
    return places.map((place, n) => {
      if (!isRate) return Number.isNaN(column[place]) ? null : column[place];
      const before = n ? places[n - 1] : place - 1;
      const [t0, v0] = before < 0 ? [0, 0] : [t[before], column[before]];
      return t[place] > t0 ? Math.max(0, (column[place] - v0) / (t[place] - t0)) : null;
    });
  }
}
