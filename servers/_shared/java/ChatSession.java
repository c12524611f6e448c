package netdyno;

import java.util.Arrays;

/** Each message becomes one immutable frame that all recipients share. */
final class ChatSession extends FramedSession {
  ChatSession(Options options, Totals totals) {
    super(options, totals);
  }

  @Override
  void onFrame(byte[] data, int from, int to, Effects effects) {
    totals.requests.increment();
    effects.broadcast(new Effects.Frame(Arrays.copyOfRange(data, from, to), HEADER));
  }
}
