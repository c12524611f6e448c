package netdyno;

import java.util.concurrent.atomic.LongAdder;

/** What every server counts. Any thread may add. */
public final class Totals {
  public final LongAdder requests;
  public final LongAdder bytesIn = new LongAdder();
  public final LongAdder bytesOut = new LongAdder();
  public final LongAdder connections;
  public final LongAdder protocolErrors;
  public final LongAdder slowClosed;
  public final LongAdder memoryClosed;

  public Totals() {
    requests = new LongAdder();
    connections = new LongAdder();
    protocolErrors = new LongAdder();
    slowClosed = new LongAdder();
    memoryClosed = new LongAdder();
  }

  private Totals(Totals encrypted) {
    requests = encrypted.requests;
    connections = encrypted.connections;
    protocolErrors = encrypted.protocolErrors;
    slowClosed = encrypted.slowClosed;
    memoryClosed = encrypted.memoryClosed;
  }

  /** For what is behind TLS: the same, but for the bytes, as those that count are encrypted. */
  public Totals behindTls() {
    return new Totals(this);
  }

  String json() {
    return "{\"requests\": " + requests.sum() + ", \"bytes_in\": " + bytesIn.sum() + ", \"bytes_out\": "
        + bytesOut.sum() + ", \"connections\": " + connections.sum() + ", \"protocol_errors\": "
        + protocolErrors.sum() + ", \"slow_closed\": " + slowClosed.sum() + ", \"memory_closed\": "
        + memoryClosed.sum() + "}";
  }
}
