import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.EventLoop;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import netdyno.Effects.Frame;
import netdyno.Options;
import netdyno.Totals;

/** One event loop and its connections. On its own thread, unless it says otherwise. */
final class Shard {
  final EventLoop loop;
  final Options options;
  final Totals totals;
  final ReactivePool backend; // null: without one
  final byte[] scratch; // what a read brought is given to a session before the next one
  private final Collection<Shard> everybody;
  private final Set<Connection> connections = new HashSet<>();
  private final Set<Connection> members = new HashSet<>(); // of the chat
  private List<Connection> unflushed = new ArrayList<>();
  private List<Connection> flushing = new ArrayList<>();
  private final AtomicLong inbox = new AtomicLong(); // held by frames from other shards
  private final CountDownLatch ended = new CountDownLatch(1);
  private boolean stopping;

  Shard(EventLoop loop, Options options, Totals totals, ReactivePool backend, Collection<Shard> everybody) {
    this.loop = loop;
    this.options = options;
    this.totals = totals;
    this.backend = backend;
    this.everybody = everybody;
    scratch = new byte[Math.max(options.readBuffer, options.tls == null ? 0 : Encryption.LARGEST_RECORD)];
  }

  void join(Connection connection) {
    totals.connections.increment();
    connections.add(connection);
    members.add(connection);
    if (stopping) connection.stopReceiving();
  }

  /** Broadcasts do not reach it any more. */
  void mute(Connection connection) {
    members.remove(connection);
  }

  void left(Connection connection) {
    members.remove(connection);
    connections.remove(connection);
    endIfAllAreGone();
  }

  /**
   * A frame goes once into each other shard's inbox. False where one of these is full: then the sender is not to be
   * read before `then` is called, on its own loop.
   */
  boolean broadcast(Frame frame, Connection sender, Runnable then) {
    Shard full = null;
    for (Shard shard : everybody) {
      if (shard == this) {
        deliver(frame, options.toAll ? null : sender);
        continue;
      }
      int size = frame.held();
      if (shard.inbox.addAndGet(size) > options.outboxLimit) full = shard;
      shard.loop.execute(() -> {
        shard.inbox.addAndGet(-size);
        shard.deliver(frame, null);
      });
    }
    if (full == null) return true;
    full.loop.execute(() -> loop.execute(then)); // behind what is in the inbox now
    return false;
  }

  /** To all members here; each channel is given the same bytes. */
  private void deliver(Frame frame, Connection except) {
    ByteBuf shared = Unpooled.directBuffer(frame.bytes().length).writeBytes(frame.bytes());
    List<Connection> slow = null;
    for (Connection member : members) {
      if (member == except || member.deliver(shared, frame.header())) continue;
      if (slow == null) slow = new ArrayList<>();
      slow.add(member);
    }
    shared.release();
    if (slow != null) for (Connection member : slow) member.giveUpSlow();
  }

  /** With whatever else is written in this turn of the loop: tasks run after it. */
  void flushLater(Connection connection) {
    if (unflushed.isEmpty()) loop.execute(this::flush);
    unflushed.add(connection);
  }

  private void flush() {
    List<Connection> due = unflushed; // a flush makes room, and so may have more to be flushed
    unflushed = flushing;
    flushing = due;
    for (Connection connection : due) connection.flushNow();
    due.clear();
  }

  /** Ends every stream at what has arrived. From any thread. */
  void stop() {
    loop.execute(() -> {
      stopping = true;
      for (Connection connection : new ArrayList<>(connections)) connection.stopReceiving();
      endIfAllAreGone();
    });
  }

  /** From any thread. */
  void awaitEnd(long nanoseconds) {
    try {
      ended.await(nanoseconds, TimeUnit.NANOSECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void endIfAllAreGone() {
    if (stopping && connections.isEmpty()) ended.countDown();
  }
}
