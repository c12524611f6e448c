package netdyno;

import java.util.ArrayDeque;

/**
 * The work of one connection without any I/O: bytes in, effects out; what lib/session/session.hpp is to C++. One thread
 * at a time may call it.
 */
public abstract class Session {
  static final byte[] NOTHING = {};

  final Options options;
  final Totals totals;
  // Of a message that is not complete: full blocks, and the one that is being filled.
  private final ArrayDeque<byte[]> full = new ArrayDeque<>(0);
  private byte[] pending = NOTHING;
  private int filled; // of the last
  private int length; // of all of it
  int wanted; // bytes without which trying again is of no use
  boolean closed;

  Session(Options options, Totals totals) {
    this.options = options;
    this.totals = totals;
  }

  /** The session of the workload that the options name. */
  public static Session make(Options options, Totals totals) {
    switch (options.workload) {
      case "echo": return new EchoSession(options, totals);
      case "lines": return new LinesSession(options, totals);
      case "rpc": return new RpcSession(options, totals);
      case "chat": return new ChatSession(options, totals);
      default: return new HttpSession(options, totals);
    }
  }

  /**
   * Takes the next bytes of the stream, in any slicing. After a close they are ignored. Without memory for them, nothing
   * but a close is to be done.
   */
  public final void receive(byte[] data, int size, Effects effects) {
    totals.bytesIn.add(size);
    if (closed) return;
    try {
      onBytes(data, size, effects);
    } catch (OutOfMemoryError none) {
      totals.memoryClosed.increment();
      effects.clear();
      close(effects);
    }
  }

  /** The peer ended its stream: what is still owed, and a close. */
  public final void end(Effects effects) {
    if (closed) return;
    onEnd(effects);
    if (!closed) close(effects);
  }

  /** The connection is gone. */
  public final void discard() {
    closed = true;
    dropKept();
  }

  /** Messages that may be cut anywhere: complete ones are consumed, and the rest is kept until more comes. */
  void onBytes(byte[] data, int size, Effects effects) {
    if (length > 0) {
      keep(data, 0, size);
      if (length < wanted) return;
      int all = length;
      byte[] whole = takeKept();
      take(whole, all, effects);
      Blocks.give(whole);
    } else {
      take(data, size, effects);
    }
  }

  private void take(byte[] data, int size, Effects effects) {
    int consumed = consume(data, size, effects);
    if (consumed < size && !closed) keep(data, consumed, size);
  }

  /** Takes complete messages off the front; how many bytes those were. */
  int consume(byte[] data, int size, Effects effects) {
    throw new UnsupportedOperationException();
  }

  /** A stream must not end inside a message. */
  void onEnd(Effects effects) {
    if (length > 0) protocolError(effects);
  }

  /** Memory is taken as it arrives, whatever length was announced. */
  final void keep(byte[] data, int from, int to) {
    while (from < to) {
      if (filled == pending.length) grow(to - from);
      int size = Math.min(to - from, pending.length - filled);
      System.arraycopy(data, from, pending, filled, size);
      from += size;
      filled += size;
      length += size;
    }
  }

  /** One block that doubles, then blocks of one size, so that nothing is copied and each can be used again. */
  private void grow(int size) {
    if (pending.length >= Blocks.LARGEST_GROWN) {
      full.add(pending);
      pending = Blocks.take(Blocks.LARGEST_GROWN);
      filled = 0;
      return;
    }
    byte[] larger = Blocks.take(Math.min(Blocks.LARGEST_GROWN, Math.max(filled + size, 2 * filled)));
    System.arraycopy(pending, 0, larger, 0, filled);
    Blocks.give(pending);
    pending = larger;
  }

  /** All that is kept, in one block that is to be given back; nothing is kept any more. */
  final byte[] takeKept() {
    byte[] whole = pending;
    if (!full.isEmpty()) {
      whole = Blocks.take(length);
      int at = 0;
      for (byte[] block = full.poll(); block != null; block = full.poll()) {
        System.arraycopy(block, 0, whole, at, block.length);
        at += block.length;
        Blocks.give(block);
      }
      System.arraycopy(pending, 0, whole, at, filled);
      Blocks.give(pending);
    }
    pending = NOTHING;
    filled = length = 0;
    return whole;
  }

  final int keptSize() {
    return length;
  }

  final void dropKept() {
    for (byte[] block = full.poll(); block != null; block = full.poll()) Blocks.give(block);
    Blocks.give(pending);
    pending = NOTHING;
    filled = length = 0;
  }

  final void close(Effects effects) {
    closed = true;
    dropKept();
    effects.close();
  }

  final void protocolError(Effects effects) {
    totals.protocolErrors.increment();
    close(effects);
  }
}
