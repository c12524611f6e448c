package netdyno;

import java.util.HashMap;
import java.util.Map;

/**
 * The options that every server takes (the program contract): values mean what they mean in lib/server/options.cpp.
 * Sizes are bytes, durations nanoseconds. No regular expression and no lambda: those cost more than all the rest of a
 * start.
 */
public final class Options {
  private static final long KIB = 1 << 10;
  private static final long GIB = 1 << 30;
  private static final String[] WORKLOADS = {"echo", "lines", "rpc", "chat", "http"};

  // name, type, default, help
  private static final String[][] KNOWN = {
    {"--listen", "URL", "tcp://127.0.0.1:0", "where to listen; port 0 picks a free one"},
    {"--workload", "echo|lines|rpc|chat|http", "echo", "application protocol"},
    {"--threads", "INT", "1", "threads that serve"},
    {"--backlog", "INT", "4096", "listen(2) backlog"},
    {"--nodelay", "on|off", "on", "TCP_NODELAY"},
    {"--read-buffer", "BYTES", "16KiB", "bytes asked for in one read"},
    {"--write-mode", "gathered|split", "gathered", "header and body in one write or two"},
    {"--audience", "others|all", "others", "who gets a chat message"},
    {"--service-time", "DUR", "0", "service time of a request of rpc or http"},
    {"--service-kind", "wait|cpu", "wait", "spend it waiting or burning CPU"},
    {"--max-frame", "BYTES", "1MiB", "longest message accepted"},
    {"--outbox-limit", "BYTES", "4MiB", "bytes that may wait for one slow reader"},
  };

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
  public final long serviceTime;
  public final boolean burns;
  public final int maxFrame;
  public final long outboxLimit;

  /** What cannot be meant; the text names the option. */
  public static final class UsageError extends Exception {
    private static final long serialVersionUID = 1;

    UsageError(String message) {
      super(message);
    }
  }

  /** Ends the program on --help (exit 0) and on what cannot be meant (exit 2, one line on stderr). */
  public static Options parseOrExit(String program, String[] arguments) {
    for (String argument : arguments) {
      if (argument.equals("--help") || argument.equals("-h")) {
        Lifecycle.print(help(program));
        Runtime.getRuntime().halt(0);
      }
    }
    try {
      return new Options(program, arguments);
    } catch (UsageError error) {
      Lifecycle.die(2, program + ": " + error.getMessage() + " (--help lists the options)");
      throw new AssertionError(error);
    }
  }

  public Options(String program, String... arguments) throws UsageError {
    this.program = program;
    Map<String, String> given = given(arguments);
    String[] place = url(given);
    host = place[0];
    port = Integer.parseInt(place[1]);
    workload = word(given, "--workload", WORKLOADS);
    threads = (int) whole(given, "--threads", 1024);
    backlog = (int) whole(given, "--backlog", 65535);
    nodelay = word(given, "--nodelay", "on", "off").equals("on");
    readBuffer = (int) bytes(given, "--read-buffer", GIB);
    split = word(given, "--write-mode", "gathered", "split").equals("split");
    toAll = word(given, "--audience", "others", "all").equals("all");
    serviceTime = duration(given);
    burns = word(given, "--service-kind", "wait", "cpu").equals("cpu");
    maxFrame = (int) bytes(given, "--max-frame", GIB);
    outboxLimit = bytes(given, "--outbox-limit", 1L << 40);
  }

  private static Map<String, String> given(String[] arguments) throws UsageError {
    Map<String, String> given = new HashMap<>();
    for (int i = 0; i < arguments.length; ++i) {
      int equals = arguments[i].indexOf('=');
      String name = equals < 0 ? arguments[i] : arguments[i].substring(0, equals);
      if (known(name) == null) throw new UsageError("unknown argument: " + name);
      if (equals < 0 && i + 1 == arguments.length) throw new UsageError(name + ": a value is missing");
      String value = equals < 0 ? arguments[++i] : arguments[i].substring(equals + 1);
      if (given.put(name, value) != null) throw new UsageError(name + ": given twice");
    }
    return given;
  }

  private static String[] known(String name) {
    for (String[] option : KNOWN) if (option[0].equals(name)) return option;
    return null;
  }

  private static String text(Map<String, String> given, String name) {
    String text = given.get(name);
    return text == null ? known(name)[2] : text;
  }

  private static String help(String program) {
    StringBuilder text = new StringBuilder(program + ": netdyno contestant: see protocol/WIRE.md for what it speaks\n");
    for (String[] option : KNOWN) {
      text.append("  ").append(option[0]).append(' ').append(option[1]).append("  ");
      text.append(option[3]).append(" [").append(option[2]).append("]\n");
    }
    return text.toString();
  }

  private static UsageError refused(String name, String why) {
    return new UsageError(name + ": " + why);
  }

  private static String word(Map<String, String> given, String name, String... words) throws UsageError {
    String text = text(given, name);
    for (String word : words) if (word.equals(text)) return text;
    throw refused(name, "'" + text + "' is none of " + String.join("|", words));
  }

  private static long whole(Map<String, String> given, String name, long most) throws UsageError {
    String text = text(given, name);
    String digits = text.startsWith("-") ? text.substring(1) : text;
    if (!isDigits(digits)) throw refused(name, "'" + text + "' is no whole number");
    long value = Long.parseLong(text);
    if (value < 1 || value > most) throw refused(name, text + " is not in [1 - " + most + "]");
    return value;
  }

  /** "16384", "16KiB", "1MiB", "1GiB" (powers of 1024; "16k" and "16KB" are refused as ambiguous). */
  private static long bytes(Map<String, String> given, String name, long most) throws UsageError {
    String text = text(given, name);
    String number = text;
    long unit = 1;
    for (int i = 0; i < 3; ++i) {
      if (text.endsWith("KMG".charAt(i) + "iB")) {
        number = text.substring(0, text.length() - 3);
        unit = KIB << 10 * i;
      }
    }
    if (unit == 1 && text.endsWith("B")) number = text.substring(0, text.length() - 1);
    if (!isDigits(number)) throw refused(name, "'" + text + "' is no size; want e.g. 512, 16KiB, 1MiB");
    long value = Long.parseLong(number);
    if (value < 1 || value > most / unit) throw refused(name, "'" + text + "' is out of range");
    return value * unit;
  }

  /** "250us", "5ms", "1.5s", "2m", "0". A bare number other than 0 has no unit and is refused. */
  private static long duration(Map<String, String> given) throws UsageError {
    String text = text(given, "--service-time");
    String[] units = {"ns", "us", "ms", "s", "m"};
    double[] sizes = {1, 1e3, 1e6, 1e9, 60e9};
    int unit = 0;
    while (unit < units.length && !text.endsWith(units[unit])) ++unit;
    String number = unit < units.length ? text.substring(0, text.length() - units[unit].length()) : text;
    int point = number.indexOf('.');
    boolean good = isDigits(point < 0 ? number : number.substring(0, point) + number.substring(point + 1));
    double value = good ? Double.parseDouble(number) * (unit < units.length ? sizes[unit] : 1) : 0;
    if (!good || value > 9e18 || (unit == units.length && value != 0))
      throw refused("--service-time", "'" + text + "' is no duration; want e.g. 250us, 5ms, 1s");
    return Math.round(value);
  }

  /** Few enough for a long. */
  private static boolean isDigits(String text) {
    for (int i = 0; i < text.length(); ++i) if (text.charAt(i) < '0' || text.charAt(i) > '9') return false;
    return !text.isEmpty() && text.length() < 19;
  }

  /** Host and port of tcp://host:port; an IPv6 host stands in brackets (RFC 3986, 3.2.2). */
  private static String[] url(Map<String, String> given) throws UsageError {
    String text = text(given, "--listen");
    int scheme = text.indexOf("://");
    String place = scheme < 1 ? "" : text.substring(scheme + 3);
    if (place.indexOf('?') >= 0) place = place.substring(0, place.indexOf('?'));
    int colon = place.lastIndexOf(':');
    String host = colon < 0 ? "" : place.substring(0, colon);
    String port = place.substring(colon + 1);
    boolean brackets = host.startsWith("[") && host.endsWith("]") && host.indexOf(':') > 0;
    if (brackets) host = host.substring(1, host.length() - 1);
    if (!isHost(host, brackets) || !isDigits(port) || Long.parseLong(port) > 65535)
      throw refused("--listen", "'" + text + "' is no URL; want e.g. tcp://127.0.0.1:7000");
    String transport = text.substring(0, scheme);
    if (!transport.equals("tcp")) throw refused("--listen", "transport '" + transport + "' is not spoken here");
    return new String[] {host, port};
  }

  private static boolean isHost(String text, boolean address) {
    for (int i = 0; i < text.length(); ++i) {
      char c = text.charAt(i);
      boolean alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!alphanumeric && ".-_".indexOf(c) < 0 && !(address && (c == ':' || c == '%'))) return false;
    }
    return !text.isEmpty();
  }
}
