package netdyno;

/** Source D's `process`: what was read is split by line before it is echoed. */
final class LinesSession extends Session {
  LinesSession(Options options, Totals totals) {
    super(options, totals);
  }

  @Override
  void onBytes(byte[] data, int size, Effects effects) {
    for (int at = 0; at < size && !closed; ) {
      int end = at;
      while (end < size && data[end] != '\n') ++end;
      boolean complete = end < size;
      if (complete) ++end;
      if (keptSize() + end - at > options.maxFrame) protocolError(effects);
      else if (complete) echo(data, at, end, effects);
      else keep(data, at, end);
      at = end;
    }
  }

  private void echo(byte[] tail, int from, int to, Effects effects) {
    totals.requests.increment();
    if (keptSize() == 0) {
      effects.reply(NOTHING, 0, tail, from, to - from);
      return;
    }
    keep(tail, from, to);
    int size = keptSize();
    byte[] line = takeKept();
    effects.reply(NOTHING, 0, line, 0, size);
    Blocks.give(line);
  }

  @Override
  void onEnd(Effects effects) {
    if (keptSize() > 0) echo(NOTHING, 0, 0, effects);
  }
}
