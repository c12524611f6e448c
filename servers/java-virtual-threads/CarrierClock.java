import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** CPU time of the thread that carries the calling virtual thread, which the JVM tells of platform threads only. */
final class CarrierClock {
  private static final int CLOCK_THREAD_CPUTIME_ID = 3; // clock_gettime(2)
  private static final long SLICE_NS = 10_000_000;
  private static final MethodHandle CLOCK_GETTIME = Linker.nativeLinker().downcallHandle(
      Linker.nativeLinker().defaultLookup().find("clock_gettime").orElseThrow(),
      FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.ADDRESS));

  private CarrierClock() {}

  static long nanoseconds() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment time = arena.allocate(ValueLayout.JAVA_LONG, 2);
      int failed = (int) CLOCK_GETTIME.invokeExact(CLOCK_THREAD_CPUTIME_ID, time);
      if (failed != 0) throw new IllegalStateException("clock_gettime failed");
      return time.getAtIndex(ValueLayout.JAVA_LONG, 0) * 1_000_000_000 + time.getAtIndex(ValueLayout.JAVA_LONG, 1);
    } catch (Throwable error) {
      throw new IllegalStateException(error);
    }
  }

  /**
   * Keeps the carrier busy for so much of its CPU time, in slices between which other virtual threads have their turn.
   * A virtual thread changes its carrier only where it waits or yields.
   */
  static void burn(long duration) {
    for (long left = duration; left > 0; ) {
      long begin = nanoseconds();
      long limit = System.nanoTime() + SLICE_NS;
      long spent = 0;
      for (long now = System.nanoTime(); spent < left && now < limit; spent = nanoseconds() - begin) {
        long until = Math.min(now + left - spent, limit);
        while (now < until) now = System.nanoTime();
      }
      left -= spent;
      if (left > 0) Thread.yield();
    }
  }
}
