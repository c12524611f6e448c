package netdyno;

/** Length-prefixed messages; subclasses serve one body. */
abstract class FramedSession extends Session {
  static final int HEADER = 4; // bytes of a frame's length

  FramedSession(Options options, Totals totals) {
    super(options, totals);
  }

  @Override
  final int consume(byte[] data, int size, Effects effects) {
    int at = 0;
    while (!closed) {
      wanted = HEADER;
      if (size - at < HEADER) break;
      int body = 0;
      for (int i = 0; i < HEADER; ++i) body = body << 8 | data[at + i] & 0xff;
      if (body <= 0 || body > options.maxFrame) { // above 2^31 it is negative
        protocolError(effects);
        break;
      }
      wanted = HEADER + body;
      if (size - at < wanted) break;
      onFrame(data, at, at + wanted, effects);
      at += wanted;
    }
    return at;
  }

  /** The frame with its header. */
  abstract void onFrame(byte[] data, int from, int to, Effects effects);

  static void putLength(byte[] to, int length) {
    for (int i = 0; i < HEADER; ++i) to[i] = (byte) (length >>> 24 - 8 * i);
  }
}
