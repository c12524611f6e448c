import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import netdyno.Lifecycle;
import netdyno.Options;
import netdyno.Totals;

/** Blocking sockets on virtual threads: one that accepts, one for each connection, and in chat another that writes. */
public final class Main {
  private static final int EXHAUSTED_PAUSE_MS = 10;
  private static final int POLL_MS = 1;

  private final Options options;
  private final Totals totals = new Totals();
  private final Members members;
  private final AtomicBoolean stopping = new AtomicBoolean();
  private final CountDownLatch accepted = new CountDownLatch(1);
  private ServerSocket listener;

  public static void main(String[] arguments) throws InterruptedException {
    new Main(Options.readOrExit("java-virtual-threads", arguments)).run();
  }

  private Main(Options options) {
    this.options = options;
    // By default it would listen for IPv4 on a socket of IPv6.
    if (options.host.indexOf(':') < 0) System.setProperty("java.net.preferIPv4Stack", "true");
    members = new Members(options, totals);
  }

  private void run() throws InterruptedException {
    startCarriers();
    if (options.burns) CarrierClock.nanoseconds();
    new Connection(new Socket(), members).rehearse();
    try {
      listener = members.encryption == null ? new ServerSocket() : members.encryption.listen();
      listener.setReuseAddress(true);
      listener.bind(new InetSocketAddress(options.host, options.port), options.backlog);
    } catch (IOException error) {
      Lifecycle.dieListening(options, error);
    }
    Lifecycle.onTermination(this::stop);
    // The first thread to wait starts what the JVM polls with, before the server is ready.
    Thread acceptor = Thread.ofVirtual().start(this::acceptAll);
    while (acceptor.getState() != Thread.State.WAITING) Thread.sleep(POLL_MS);
    Lifecycle.announceReady((InetSocketAddress) listener.getLocalSocketAddress());
    Thread.sleep(Long.MAX_VALUE);
  }

  /** As many carrier threads as were asked for, and all of them now: the JVM would start them as it goes. */
  private void startCarriers() throws InterruptedException {
    System.setProperty("jdk.virtualThreadScheduler.parallelism", Integer.toString(options.threads));
    System.setProperty("jdk.virtualThreadScheduler.maxPoolSize", Integer.toString(options.threads));
    CountDownLatch running = new CountDownLatch(options.threads);
    Runnable keep = () -> {
      running.countDown();
      while (running.getCount() > 0) Thread.onSpinWait(); // keeps its carrier, so that the next one needs another
    };
    for (int i = 0; i < options.threads; ++i) Thread.ofVirtual().start(keep);
    running.await();
  }

  private void acceptAll() {
    while (!stopping.get()) {
      try {
        Socket socket = listener.accept();
        socket.setTcpNoDelay(options.nodelay);
        members.serve(socket);
      } catch (IOException error) {
        if (stopping.get()) break;
        pause(); // it concerns the peer alone, or what is scarce now
      }
    }
    accepted.countDown();
  }

  private static void pause() {
    try {
      Thread.sleep(EXHAUSTED_PAUSE_MS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Stops accepting, ends every stream at what has arrived, and ends the program. On a thread of the signal's own. */
  private void stop() {
    if (stopping.getAndSet(true)) return;
    long end = System.nanoTime() + Lifecycle.GRACE_MS * 1_000_000;
    try {
      listener.close();
      accepted.await(Lifecycle.GRACE_MS, TimeUnit.MILLISECONDS);
      members.stop();
      members.awaitEnd(end - System.nanoTime());
    } catch (IOException | InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    Lifecycle.finish(totals);
  }
}
