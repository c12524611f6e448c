package netdyno;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.Socket;
import java.util.concurrent.ArrayBlockingQueue;

/**
 * The connections to the backend, one question in flight on each (protocol/WIRE.md, Backend). A thread without a free
 * one waits, in the order of arrival. Any thread may call it.
 */
public final class BackendPool {
  private final ArrayBlockingQueue<Asked> free;

  /** Ends the program where there is no backend. */
  public BackendPool(Options options) {
    free = new ArrayBlockingQueue<>(options.pool, true);
    try {
      for (int i = 0; i < options.pool; ++i) free.add(new Asked(new Socket(options.backendHost, options.backendPort)));
    } catch (IOException error) {
      dieUnconnected(options, error);
    }
  }

  /** The frame that asks for a reply after so many nanoseconds. */
  public static byte[] question(long duration) {
    return Protobuf.question(duration);
  }

  /** Ends the program, as there is no backend. */
  public static void dieUnconnected(Options options, Throwable error) {
    String place = "tcp://" + options.backendHost + ":" + options.backendPort;
    String why = "cannot connect to the backend " + place + "; start it first: " + error.getMessage();
    Lifecycle.die(1, options.program + ": " + why);
  }

  /** Ends the program: without its backend it has no answers. */
  public static void dieUnanswered() {
    Lifecycle.die(1, "the backend closed a connection; it must run as long as this server");
  }

  /** Returns when the backend has replied after so many nanoseconds. */
  public void ask(long duration) throws InterruptedException {
    Asked connection = free.take();
    try {
      connection.ask(duration);
    } catch (IOException gone) {
      dieUnanswered();
    }
    free.add(connection);
  }

  private static final class Asked {
    private final Socket socket;
    private final DataInputStream input;

    Asked(Socket socket) throws IOException {
      socket.setTcpNoDelay(true);
      this.socket = socket;
      input = new DataInputStream(socket.getInputStream());
    }

    void ask(long duration) throws IOException {
      socket.getOutputStream().write(Protobuf.question(duration));
      input.readFully(new byte[input.readInt()]);
    }
  }
}
