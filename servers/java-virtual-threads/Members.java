import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Phaser;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import netdyno.BackendPool;
import netdyno.Effects.Frame;
import netdyno.Options;
import netdyno.Totals;

/** All connections. Any thread may call it. */
final class Members {
  final Options options;
  final Totals totals;
  final Encryption encryption; // null: without TLS
  final BackendPool backend; // null: without one
  private final Set<Connection> connections = ConcurrentHashMap.newKeySet();
  private final Set<Connection> listening = ConcurrentHashMap.newKeySet(); // of the chat
  private final Phaser alive = new Phaser(1);

  Members(Options options, Totals totals) {
    this.options = options;
    encryption = options.tls == null ? null : new Encryption(options, totals);
    backend = options.backendHost == null ? null : new BackendPool(options);
    this.totals = encryption == null ? totals : totals.behindTls();
  }

  void serve(Socket socket) {
    totals.connections.increment();
    Connection connection = new Connection(socket, this);
    connections.add(connection);
    listening.add(connection);
    alive.register();
    connection.start();
  }

  /** Broadcasts do not reach it any more. */
  void mute(Connection connection) {
    listening.remove(connection);
  }

  void left(Connection connection) {
    listening.remove(connection);
    connections.remove(connection);
    alive.arriveAndDeregister();
  }

  /** To everybody who listens. Waits for those whose threads have not got round to writing. */
  void broadcast(Frame frame, Connection sender) throws InterruptedException {
    for (Connection member : listening) {
      if ((member != sender || options.toAll) && member.deliver(frame)) member.waitWhileBehind();
    }
  }

  /** Ends every stream at what has arrived. No client joins any more. */
  void stop() {
    for (Connection connection : connections) Thread.ofVirtual().start(connection::stopReceiving);
  }

  /** Until all connections are done, or the time is over. */
  void awaitEnd(long nanoseconds) throws InterruptedException {
    try {
      alive.awaitAdvanceInterruptibly(alive.arrive(), nanoseconds, TimeUnit.NANOSECONDS);
    } catch (TimeoutException over) {
      // What is not answered by now is given up.
    }
  }
}
