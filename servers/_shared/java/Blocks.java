package netdyno;

import java.util.ArrayDeque;

/**
 * Arrays for what waits in sessions, used again and again: as garbage they would grow the heap, which the collector does
 * not look through before it has reached its limit. Any thread may call it.
 */
final class Blocks {
  private static final int SMALLEST = 12; // 4 KiB: what is smaller dies young
  private static final long MOST_SPARE = 8L << 20;
  private static final long WORTH_COLLECTING = 8L << 20;
  private static final int COLLECT_AFTER_MS = 1000;

  /** Of a message that grows: beyond that it takes another block. */
  static final int LARGEST_GROWN = 64 << 10;

  @SuppressWarnings("unchecked")
  private static final ArrayDeque<byte[]>[] SPARE = new ArrayDeque[31]; // by the logarithm of their size

  private static long spare;
  private static long dropped; // since the last collection
  private static boolean collects;

  private Blocks() {}

  /** At least so long. */
  static byte[] take(int size) {
    int log = 32 - Integer.numberOfLeadingZeros(Math.max(size, 1) - 1);
    if (log < SMALLEST || log > 30) return new byte[size];
    synchronized (SPARE) {
      byte[] block = SPARE[log] == null ? null : SPARE[log].poll();
      if (block != null) {
        spare -= block.length;
        return block;
      }
    }
    return new byte[1 << log];
  }

  static void give(byte[] block) {
    int log = 31 - Integer.numberOfLeadingZeros(block.length);
    if (log < SMALLEST || block.length != 1 << log) return;
    synchronized (SPARE) {
      if (spare + block.length > MOST_SPARE) {
        drop(block.length);
        return;
      }
      if (SPARE[log] == null) SPARE[log] = new ArrayDeque<>();
      SPARE[log].push(block);
      spare += block.length;
    }
  }

  /** The heap goes back to the system when it is collected, and that may be never where no client sends any more. */
  private static void drop(int size) {
    dropped += size;
    if (dropped < WORTH_COLLECTING || collects) return;
    collects = true;
    Thread collector = new Thread(Blocks::collect);
    collector.setDaemon(true);
    collector.start();
  }

  private static void collect() {
    try {
      Thread.sleep(COLLECT_AFTER_MS);
    } catch (InterruptedException interrupted) {
      return;
    }
    synchronized (SPARE) {
      dropped = 0;
      collects = false;
    }
    System.gc();
  }
}
