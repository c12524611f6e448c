package netdyno;

/**
 * The options that every server takes, as the launcher hands them over: protocol/WIRE.md, "Options". Sizes are bytes,
 * durations nanoseconds.
 */
public final class Options {
  public final String program;
  public final String host;
  public final int port;
  public final String workload;
  public final int threads;
  public final int backlog;
  public final boolean nodelay;
  public final int readBuffer;
  public final boolean split;
  public final boolean toAll;
  public final boolean single; // a write for each chat message to each recipient
  public final long serviceTime;
  public final boolean burns;
  public final int maxFrame;
  public final long outboxLimit;
  public final String backendHost; // null: without service kind backend
  public final int backendPort;
  public final int pool; // connections to it
  public final String tls; // the file of a Certificate; null: without TLS

  /** Ends the program with exit 2 where it was not started by the launcher. */
  public static Options readOrExit(String program, String[] arguments) {
    if (arguments.length != 1 || !arguments[0].startsWith("{"))
      Lifecycle.die(2, program + ": wants its resolved options as one JSON argument: ./netdyno serve " + program);
    return new Options(program, arguments[0]);
  }

  /** From one JSON object. */
  public Options(String program, String resolved) {
    this.program = program;
    host = text(resolved, "host");
    port = (int) number(resolved, "port");
    workload = text(resolved, "workload");
    threads = (int) number(resolved, "threads");
    backlog = (int) number(resolved, "backlog");
    nodelay = value(resolved, "nodelay").equals("true");
    readBuffer = (int) number(resolved, "read_buffer");
    split = text(resolved, "write_mode").equals("split");
    toAll = text(resolved, "audience").equals("all");
    single = text(resolved, "deliveries").equals("single");
    serviceTime = number(resolved, "service_time_ns");
    burns = text(resolved, "service_kind").equals("cpu");
    maxFrame = (int) number(resolved, "max_frame");
    outboxLimit = number(resolved, "outbox_limit");
    boolean asks = text(resolved, "service_kind").equals("backend");
    backendHost = asks ? text(resolved, "backend_host") : null;
    backendPort = asks ? (int) number(resolved, "backend_port") : 0;
    pool = asks ? (int) number(resolved, "pool") : 0;
    tls = path(resolved, "tls");
  }

  private static String text(String resolved, String key) {
    String value = value(resolved, key);
    return value.substring(1, value.length() - 1);
  }

  private static long number(String resolved, String key) {
    return Long.parseLong(value(resolved, key));
  }

  /** A text that may hold anything, and so is the last; null where it is missing. */
  private static String path(String resolved, String key) {
    String name = ",\"" + key + "\":\"";
    int at = resolved.indexOf(name);
    return at < 0 ? null : resolved.substring(at + name.length(), resolved.length() - 2).translateEscapes();
  }

  /**
   * The value of a key in an object without nested values and blanks, whose texts have no comma and no escape (but for
   * a path): the JDK has no JSON, and a package for it would take longer to load than all the rest of a start.
   */
  private static String value(String resolved, String key) {
    String name = "\"" + key + "\":";
    int at = resolved.indexOf(name);
    if (at < 0) throw new IllegalArgumentException("no option " + key + " in " + resolved);
    int begin = at + name.length();
    int comma = resolved.indexOf(',', begin);
    return resolved.substring(begin, comma < 0 ? resolved.length() - 1 : comma);
  }
}
