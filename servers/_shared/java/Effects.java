package netdyno;

import java.util.Arrays;

/**
 * What a session wants done, in order. Carry out one effect after the other, finish all before the next
 * Session.receive of the same connection, then clear().
 */
public final class Effects {
  /** Write bytes in one write; wait without holding up others; burn: keep the core busy; close once all is sent. */
  public enum Kind { WRITE, BROADCAST, WAIT, BURN, CLOSE }

  /** A complete frame, header included, that any number of recipients share. */
  public record Frame(byte[] bytes, int header) {
    /** What it counts against an outbox limit. */
    public int held() {
      return bytes.length + FRAME_OVERHEAD;
    }
  }

  /**
   * What a frame that waits for a reader counts beside its bytes, in every server (protocol/WIRE.md): a frame of one
   * byte takes far more than that to keep.
   */
  public static final int FRAME_OVERHEAD = 128;

  private final boolean split;
  private Kind[] kinds = new Kind[8];
  private long[] values = new long[8]; // write: where the bytes are; wait, burn: nanoseconds
  private int[] sizes = new int[8];
  private Frame[] frames = new Frame[8];
  private int count;
  private byte[] storage = new byte[256];
  private int stored;

  public Effects(boolean split) {
    this.split = split;
  }

  public int count() {
    return count;
  }

  public Kind kind(int i) {
    return kinds[i];
  }

  public long duration(int i) {
    return values[i];
  }

  public Frame frame(int i) {
    return frames[i];
  }

  /** Where the bytes of a write are in storage(). */
  public int from(int i) {
    return (int) values[i];
  }

  public int size(int i) {
    return sizes[i];
  }

  /** Valid until clear(). */
  public byte[] storage() {
    return storage;
  }

  public void clear() {
    Arrays.fill(frames, 0, count, null);
    count = 0;
    stored = 0;
    if (storage.length > 1 << 16) storage = new byte[256]; // one large reply is no reason to keep its memory
  }

  /** A reply of two parts (the first may be empty). Gathered: joins the write before it. Split: a write per part. */
  void reply(byte[] header, int headerSize, byte[] body, int from, int size) {
    write(header, 0, headerSize);
    write(body, from, size);
  }

  private void write(byte[] bytes, int from, int size) {
    if (size == 0) return;
    if (stored + size > storage.length) storage = Arrays.copyOf(storage, Math.max(2 * storage.length, stored + size));
    System.arraycopy(bytes, from, storage, stored, size);
    if (!split && count > 0 && kinds[count - 1] == Kind.WRITE) sizes[count - 1] += size;
    else add(Kind.WRITE, stored, size, null);
    stored += size;
  }

  void broadcast(Frame frame) {
    add(Kind.BROADCAST, 0, 0, frame);
  }

  /** Nothing is added for a duration of 0. */
  void serve(boolean burns, long duration) {
    if (duration > 0) add(burns ? Kind.BURN : Kind.WAIT, duration, 0, null);
  }

  void close() {
    add(Kind.CLOSE, 0, 0, null);
  }

  private void add(Kind kind, long value, int size, Frame frame) {
    if (count == kinds.length) {
      kinds = Arrays.copyOf(kinds, 2 * count);
      values = Arrays.copyOf(values, 2 * count);
      sizes = Arrays.copyOf(sizes, 2 * count);
      frames = Arrays.copyOf(frames, 2 * count);
    }
    kinds[count] = kind;
    values[count] = value;
    sizes[count] = size;
    frames[count++] = frame;
  }
}
