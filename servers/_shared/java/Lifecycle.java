package netdyno;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import sun.misc.Signal;

/** From the first line of a server's life to its last. */
public final class Lifecycle {
  /** How long a server may still work on what is in flight after a shutdown signal. */
  public static final long GRACE_MS = 2000;
  /** How long a connection that was closed because of what the peer sent may take to deliver the last replies. */
  public static final long LINGER_MS = 1000;

  private Lifecycle() {}

  static void print(String text) {
    write(FileDescriptor.out, text);
  }

  private static void write(FileDescriptor to, String text) {
    try {
      // Never closed, as that would close the descriptor.
      new FileOutputStream(to).write(text.getBytes(StandardCharsets.UTF_8));
    } catch (IOException gone) {
      // The process that started the server does not read any more.
    }
  }

  /** Ends the program. Whatever is in the message, it stays one line and does nothing to a terminal. */
  public static void die(int code, String message) {
    StringBuilder shown = new StringBuilder();
    for (char c : message.toCharArray()) shown.append(c < ' ' || (c >= 0x7f && c < 0xa0) ? '?' : c);
    write(FileDescriptor.err, shown.append('\n').toString());
    Runtime.getRuntime().halt(code);
  }

  /** Ends the program, as it cannot listen. */
  public static void dieListening(Options options, Throwable error) {
    String why = String.valueOf(error.getMessage());
    String hint = "";
    if (why.contains("in use")) hint = "; another program listens there: choose another port, or port 0 for a free one";
    if (why.contains("ermission")) hint = "; ports below 1024 need rights: choose a higher one";
    if (why.contains("ssign")) hint = "; that address is not one of this machine's";
    die(1, options.program + ": cannot listen on " + url(options.host, options.port) + hint + ": " + why);
  }

  private static String url(String host, int port) {
    return "tcp://" + (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + port;
  }

  /** Prints the one line that says the server accepts. */
  public static void announceReady(InetSocketAddress address) {
    String host = address.getAddress().getHostAddress();
    if (host.equals("0:0:0:0:0:0:0:1")) host = "::1";
    if (host.equals("0:0:0:0:0:0:0:0")) host = "::";
    String endpoint = url(host, address.getPort());
    long pid = ProcessHandle.current().pid();
    print("{\"ready\": true, \"endpoint\": \"" + endpoint + "\", \"pid\": " + pid + "}\n");
  }

  /** Calls `end`, on a thread of the JVM's, at each SIGTERM or SIGINT. */
  public static void onTermination(Runnable end) {
    for (String name : new String[] {"TERM", "INT"}) Signal.handle(new Signal(name), signal -> end.run());
  }

  /** Prints the one line of totals that ends a server's life, and ends it. */
  public static void finish(Totals totals) {
    print(totals.json() + "\n");
    Runtime.getRuntime().halt(0);
  }
}
