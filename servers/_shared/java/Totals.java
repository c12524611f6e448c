package netdyno;

import java.util.concurrent.atomic.LongAdder;

/** What every server counts. Any thread may add. */
public final class Totals {
  public final LongAdder requests = new LongAdder();
  public final LongAdder bytesIn = new LongAdder();
  public final LongAdder bytesOut = new LongAdder();
  public final LongAdder connections = new LongAdder();
  public final LongAdder protocolErrors = new LongAdder();
  public final LongAdder slowClosed = new LongAdder();
  public final LongAdder memoryClosed = new LongAdder();

  String json() {
    return "{\"requests\": " + requests.sum() + ", \"bytes_in\": " + bytesIn.sum() + ", \"bytes_out\": "
        + bytesOut.sum() + ", \"connections\": " + connections.sum() + ", \"protocol_errors\": "
        + protocolErrors.sum() + ", \"slow_closed\": " + slowClosed.sum() + ", \"memory_closed\": "
        + memoryClosed.sum() + "}";
  }
}
