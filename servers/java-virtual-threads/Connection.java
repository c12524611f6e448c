import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import netdyno.Effects;
import netdyno.Effects.Frame;
import netdyno.Lifecycle;
import netdyno.Options;
import netdyno.Session;

/** One client: a virtual thread that reads, has the session serve and writes the replies; read serve() from the top. */
final class Connection {
  private static final int POLL_MS = 2;
  private static final int MOST_GATHERED = 64 << 10;
  private static final Duration A_WHILE = Duration.ofNanos(100_000);

  private final Socket socket;
  private Socket stream; // what its bytes go through: itself, or TLS over it
  private final Members members;
  private final Options options;
  private final Session session;
  private final Effects effects;
  private final byte[] buffer;
  private int readAhead; // what a read in a service time brought into the buffer: 0, nothing; -1, the end
  private boolean ended; // by the peer
  private volatile boolean lingers;

  // The outbox of chat: frames for the thread that writes.
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final ArrayDeque<Frame> outbox = new ArrayDeque<>();
  private long waiting; // held by frames, until the thread that writes takes them
  private volatile boolean writing; // to the socket, and not waiting for the lock
  private final Thread writer;
  private boolean last; // no frame comes any more

  Connection(Socket socket, Members members) {
    this.socket = stream = socket;
    this.members = members;
    options = members.options;
    session = Session.make(options, members.totals);
    effects = new Effects(options.split);
    buffer = new byte[options.readBuffer];
    writer = options.workload.equals("chat") ? Thread.ofVirtual().unstarted(this::writeFrames) : null;
  }

  void start() {
    if (writer != null) writer.start();
    Thread.ofVirtual().start(this::serve);
  }

  /** A connection that ends at once, so that the classes of one are loaded: the JVM keeps a descriptor for that. */
  void rehearse() {
    try {
      session.end(effects);
      carryOut(InputStream.nullInputStream(), OutputStream.nullOutputStream());
      session.discard();
    } catch (IOException | InterruptedException impossible) {
      throw new IllegalStateException(impossible);
    }
    close();
  }

  private void serve() {
    try {
      if (members.encryption != null) stream = members.encryption.over(socket);
      InputStream input = stream.getInputStream();
      OutputStream output = stream.getOutputStream();
      boolean open = true;
      while (open) {
        int size = readAhead == 0 ? input.read(buffer) : readAhead;
        readAhead = 0;
        ended = size < 0;
        effects.clear();
        if (ended) session.end(effects);
        else session.receive(buffer, size, effects);
        open = carryOut(input, output);
      }
      members.mute(this);
      if (writer != null) endFrames();
      if (!ended || stream != socket) stream.shutdownOutput(); // which TLS does by a message of its own
      if (!ended) linger(input);
    } catch (IOException | InterruptedException gone) {
      // The peer is gone, or was closed as a slow reader, which concerns no other client.
      if (stream != socket && !lingers && Encryption.isProtocolError(gone)) members.totals.protocolErrors.increment();
    } finally {
      close();
      session.discard();
      members.left(this);
    }
  }

  /** False where the connection is to be closed. */
  private boolean carryOut(InputStream input, OutputStream output) throws IOException, InterruptedException {
    for (int i = 0; i < effects.count(); ++i) {
      switch (effects.kind(i)) {
        case WRITE -> {
          output.write(effects.storage(), effects.from(i), effects.size(i));
          members.totals.bytesOut.add(effects.size(i));
        }
        case BROADCAST -> members.broadcast(effects.frame(i), this);
        case WAIT -> {
          if (members.backend == null) letPass(effects.duration(i), input);
          else members.backend.ask(effects.duration(i));
        }
        case BURN -> CarrierClock.burn(effects.duration(i));
        case CLOSE -> {
          return false;
        }
      }
    }
    return true;
  }

  /**
   * Lets the time pass; the peer's reset is thrown at once. As only a read reports a reset, this reads on, once. What
   * was in the buffer has been given to the session. The timeout of a read counts whole milliseconds.
   */
  private void letPass(long duration, InputStream input) throws IOException, InterruptedException {
    long end = System.nanoTime() + duration;
    for (long left = duration; left >= 1_000_000 && readAhead == 0; left = end - System.nanoTime()) {
      socket.setSoTimeout((int) (left / 1_000_000));
      try {
        readAhead = input.read(buffer);
      } catch (SocketTimeoutException over) {
        // Nothing has come.
      }
    }
    socket.setSoTimeout(0);
    long left = end - System.nanoTime();
    if (left > 0) Thread.sleep(Duration.ofNanos(left));
  }

  /**
   * Only our stream is ended, and what still comes is read: a close with unread bytes resets the connection, and the
   * peer would lose the replies that are on their way (RFC 9112, 9.6).
   */
  private void linger(InputStream input) throws IOException {
    lingers = true;
    socket.setSoTimeout((int) Lifecycle.LINGER_MS);
    long end = System.nanoTime() + Lifecycle.LINGER_MS * 1_000_000;
    for (int size = 0; size >= 0 && System.nanoTime() < end; size = input.read(buffer)) {
      members.totals.bytesIn.add(size);
    }
  }

  private void close() {
    try {
      socket.close();
    } catch (IOException gone) {
      // It is closed all the same.
    }
    lock.lock();
    try {
      last = true;
      outbox.clear();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Ends the input once what has arrived is read: Java's own shutdown would throw that away. Blocks. */
  void stopReceiving() {
    try {
      while (!lingers && socket.getInputStream().available() > 0) Thread.sleep(POLL_MS);
      socket.shutdownInput();
    } catch (IOException | InterruptedException gone) {
      // So there is nothing to read.
    }
  }

  // --- chat ---

  /**
   * Leaves a frame to the thread that writes; a reader that stalls while too much waits is closed. Any thread may
   * call it. True where much waits now: the sender must then wait until it is behind no more.
   */
  boolean deliver(Frame frame) {
    boolean slow;
    lock.lock();
    try {
      if (last) return false;
      slow = waiting > 0 && waiting + frame.held() > options.outboxLimit && stuck();
      if (!slow) {
        waiting += frame.held();
        outbox.add(frame);
        changed.signal();
        return waiting > options.outboxLimit / 2;
      }
    } finally {
      lock.unlock();
    }
    members.mute(this);
    members.totals.slowClosed.increment();
    close();
    return false;
  }

  /** Returns when there is room again, or the reader does not read: the thread that writes gets its turn meanwhile. */
  void waitWhileBehind() throws InterruptedException {
    while (behind()) Thread.sleep(A_WHILE);
  }

  private boolean behind() {
    lock.lock();
    try {
      return !last && waiting > options.outboxLimit / 2 && !stuck();
    } finally {
      lock.unlock();
    }
  }

  /** The thread that writes waits for the socket, and not for its own turn. */
  private boolean stuck() {
    return writing && writer.getState() == Thread.State.WAITING;
  }

  private void writeFrames() {
    try {
      OutputStream output = socket.getOutputStream();
      for (byte[] bytes = next(); bytes != null; bytes = next()) {
        int header = options.split ? Math.min(4, bytes.length) : 0;
        writing = true;
        if (header > 0) output.write(bytes, 0, header);
        output.write(bytes, header, bytes.length - header);
        writing = false;
        members.totals.bytesOut.add(bytes.length);
      }
    } catch (IOException | InterruptedException gone) {
      close(); // this ends the thread that reads
    }
  }

  /** The bytes of one write: a frame, or, gathered and joined, all that wait, to a bound; null when no more comes. */
  private byte[] next() throws InterruptedException {
    lock.lock();
    try {
      while (outbox.isEmpty() && !last) changed.await();
      if (outbox.isEmpty()) return null;
      Frame taken = outbox.poll();
      byte[] first = taken.bytes();
      waiting -= taken.held();
      if (options.split || options.single || outbox.isEmpty()) return first;
      int size = first.length;
      int more = 0;
      for (Frame frame : outbox) {
        if (size + frame.bytes().length > MOST_GATHERED) break;
        size += frame.bytes().length;
        ++more;
      }
      if (more == 0) return first;
      byte[] all = new byte[size];
      System.arraycopy(first, 0, all, 0, first.length);
      for (int at = first.length; more > 0; --more) {
        Frame another = outbox.poll();
        byte[] bytes = another.bytes();
        waiting -= another.held();
        System.arraycopy(bytes, 0, all, at, bytes.length);
        at += bytes.length;
      }
      return all;
    } finally {
      lock.unlock();
    }
  }

  /** Returns when all frames are written. */
  private void endFrames() throws InterruptedException {
    lock.lock();
    try {
      last = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
    writer.join();
  }
}
