package netdyno;

/**
 * The query of a request of the workload web (protocol/WIRE.md, Web): a wait and computing in nanoseconds, a size in
 * bytes. Nothing that is missing is requested.
 */
record WebQuery(long waitNs, long cpuNs, long size) {
  private static final long MOST = 10_000_000; // microseconds, or bytes

  /** Null where a value is no number of its unit. */
  static WebQuery parse(String query) {
    long wait = 0;
    long cpu = 0;
    long size = 0;
    for (int at = 0; at < query.length(); ) {
      int end = query.indexOf('&', at);
      if (end < 0) end = query.length();
      int equals = query.indexOf('=', at);
      if (equals < 0 || equals > end) return null;
      String name = query.substring(at, equals);
      long number = parseNumber(query.substring(equals + 1, end), name.equals("size") ? "" : "us");
      if (number < 0 || number > MOST) return null;
      switch (name) {
        case "wait": wait = number * 1000; break;
        case "cpu": cpu = number * 1000; break;
        case "size": size = number; break;
        default: break;
      }
      at = end + 1;
    }
    return new WebQuery(wait, cpu, size);
  }

  /** The whole number before a unit; negative where it is none. */
  static long parseNumber(String text, String unit) {
    int digits = text.length() - unit.length();
    if (digits < 1 || digits > 18 || !text.endsWith(unit)) return -1;
    long number = 0;
    for (int i = 0; i < digits; ++i) {
      char c = text.charAt(i);
      if (c < '0' || c > '9') return -1;
      number = 10 * number + c - '0';
    }
    return number;
  }
}
