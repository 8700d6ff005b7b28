// The connection to the run: first its history, then events as they come. After a cut it tries again until the server says goodbye.
// Invariant: every event is added once, because the stream goes on from the number of the last one that was added.

const WAITS = [500, 1000, 2000, 4000, 5000];
const SILENT = 25000;

export class Connection {
  constructor(store, changed) {
    this.store = store;
    this.changed = changed;
    this.state = "connecting";
    this.last = null;
    this.tries = 0;
  }

  async start() {
    try {
      if (this.tries) await this.knock();
      if (this.last === null) await this.history();
      this.listen();
    } catch {
      this.again();
    }
  }

  /** Asks for anything, because a stream of events does not tell why it was refused. */
  async knock() {
    const { status } = await fetch("assets/icon.svg", { cache: "no-store" });
    if (status === 401) this.is("refused");
    if (status !== 200) throw new Error(String(status));
  }

  async history() {
    const answer = await fetch("history", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const text = await answer.text(), last = Number(answer.headers.get("x-last-event"));
    this.server = answer.headers.get("x-server");
    this.store.reset();
    for (const line of text.split("\n")) if (line) this.store.add(JSON.parse(line));
    this.last = last;
    this.is("live");
  }

  listen() {
    const source = new EventSource(`events?after=${this.last}`);
    this.source = source;
    this.hear();
    source.onopen = () => {
      this.tries = 0;
      this.is("live");
      this.hear();
    };
    source.onmessage = (message) => {
      const number = Number(message.lastEventId);
      if (number > this.last) {
        this.last = number;
        this.store.add(JSON.parse(message.data));
        this.is("live");
      }
      this.hear();
    };
    source.addEventListener("alive", () => this.hear());
    source.addEventListener("hello", ({ data }) => {
      if (data === this.server) return;
      source.close();
      this.last = null;
      this.start();
    });
    source.addEventListener("bye", () => {
      source.close();
      clearTimeout(this.deaf);
      this.is("over");
    });
    source.onerror = () => this.again();
  }

  /** A connection from which nothing has come for long is taken for cut. The server is never silent for so long. */
  hear() {
    clearTimeout(this.deaf);
    this.deaf = setTimeout(() => this.again(), SILENT);
  }

  again() {
    this.source?.close();
    clearTimeout(this.deaf);
    if (this.state === "over" || this.state === "refused") return;
    this.is(this.store.end ? "over" : "lost");
    clearTimeout(this.waiting);
    if (this.state === "lost") this.waiting = setTimeout(() => this.start(), WAITS[Math.min(this.tries++, WAITS.length - 1)]);
  }

  is(state) {
    this.state = state;
    this.changed();
  }
}
