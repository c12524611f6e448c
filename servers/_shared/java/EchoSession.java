package netdyno;

/** Bytes as they come. What one read brought counts as one request: an echo server sees no messages. */
final class EchoSession extends Session {
  EchoSession(Options options, Totals totals) {
    super(options, totals);
  }

  @Override
  void onBytes(byte[] data, int size, Effects effects) {
    totals.requests.increment();
    effects.reply(NOTHING, 0, data, 0, size);
  }
}
