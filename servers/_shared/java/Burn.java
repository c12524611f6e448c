package netdyno;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** Keeping a core busy. Apart, as most servers never do, and the bean takes time to load. */
public final class Burn {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  /** How long others of the same thread may be held up. */
  private static final long SLICE_NS = 10_000_000;

  private Burn() {}

  /** Loads what burning takes, so that it does not hold up who comes with the first request. */
  public static void prepare() {
    THREADS.getCurrentThreadCpuTime();
  }

  /**
   * Keeps the core of this platform thread busy for so much of its own CPU time, so being preempted does not count as
   * work, but no longer than a slice by the clock. What is left to burn. It reads the clock that user mode can read,
   * and asks the other only whether it was preempted meanwhile.
   */
  public static long cpu(long duration) {
    long end = THREADS.getCurrentThreadCpuTime() + duration;
    long limit = System.nanoTime() + SLICE_NS;
    long left = duration;
    for (long now = System.nanoTime(); left > 0 && now < limit; left = end - THREADS.getCurrentThreadCpuTime()) {
      long until = Math.min(now + left, limit);
      while (now < until) now = System.nanoTime();
    }
    return Math.max(0, left);
  }
}
