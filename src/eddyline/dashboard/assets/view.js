// The moment and the stretch of time that the page shows: the newest moment (live), or one in the past, or one that moves (playing).

export const RANGES = [["all", "all"], ["60", "1 min"], ["600", "10 min"], ["3600", "1 hour"]];
const SPEED = { 60: 1, 600: 5, 3600: 20 };

export class View {
  constructor(store) {
    this.store = store;
    this.isLive = true;
    this.isPlaying = false;
    this.moment = 0;
    this.range = "all";
    this.zoom = null;
    this.changed = () => {};
  }

  /** The time that the page shows. */
  get t() {
    return this.isLive ? this.store.last : Math.min(this.moment, this.store.last);
  }

  /** The two ends of the time in the charts. */
  get span() {
    if (this.zoom) return this.zoom;
    const last = Math.max(this.store.last, 1), length = Number(this.range);
    if (this.range === "all" || last <= length) return [0, last];
    const end = this.isLive ? last : Math.min(last, Math.max(length, this.t + length / 2));
    return [end - length, end];
  }

  live() {
    this.isLive = true;
    this.isPlaying = false;
    this.zoom = null;
    this.changed();
  }

  goto(t) {
    this.isLive = false;
    this.moment = Math.max(0, Math.min(t, this.store.last));
    this.changed();
  }

  look(range, zoom = null) {
    this.range = range;
    this.zoom = zoom;
    this.changed();
  }

  /** Starts or stops playing; from the end it starts at the beginning. */
  play() {
    this.isPlaying = !this.isPlaying;
    if (this.isPlaying) {
      if (this.isLive || this.t >= this.store.last - 0.5) this.moment = 0;
      this.isLive = false;
    }
    this.changed();
  }

  /** How many seconds of the run pass in a second of playing: a run of any length takes about a minute. */
  get speed() {
    return SPEED[this.range] ?? Math.max(1, this.store.last / 60);
  }

  tick(seconds) {
    if (!this.isPlaying) return;
    this.moment += seconds * this.speed;
    if (this.moment >= this.store.last) {
      if (this.store.end) {
        this.moment = this.store.last;
        this.isPlaying = false;
      } else this.live();
    }
    this.changed();
  }

  /** To the change before (-1) or after (1) the moment. */
  jump(way) {
    const times = this.store.decisions.filter((one) => !one.isMinor).map((one) => one.t).sort((a, b) => a - b);
    const next = way < 0 ? times.findLast((t) => t < this.t - 0.05) : times.find((t) => t > this.t + 0.05);
    if (next !== undefined) this.goto(next + 0.01);
    else if (way > 0) this.live();
  }
}
