package netdyno;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/**
 * HTTP/1.1 GET and HEAD with keep-alive and pipelining (RFC 9112); the reply's body is the request target. By hand, as
 * the contract is about bytes: a codec would answer malformed requests its own way.
 */
final class HttpSession extends Session {
  private static final int MAX_HEAD = 16 << 10;
  private static final int END = 4; // bytes of the CRLF CRLF that ends a head
  private static final String PUNCTUATION = "!#$%&'*+-.^_`|~";

  private static final String OK = "200 OK";
  private static final String BAD_REQUEST = "400 Bad Request";
  private static final String NOT_IMPLEMENTED = "501 Not Implemented";
  private static final byte[] NOTHING = {};
  private static volatile Dated dated = new Dated(-1);

  private final int maxHead;
  // Of the head that was parsed last.
  private int targetFrom;
  private int targetTo;
  private boolean wantsBody; // not of HEAD
  private String connection; // what the reply says of it; empty where it stays by default

  HttpSession(Options options, Totals totals) {
    super(options, totals);
    maxHead = Math.min(MAX_HEAD, options.maxFrame);
    wanted = 2; // an empty line
  }

  @Override
  int consume(byte[] data, int size, Effects effects) {
    int at = 0;
    while (!closed) {
      while (at + 1 < size && data[at] == '\r' && data[at + 1] == '\n') at += 2; // RFC 9112, 2.2
      int end = endOfHead(data, at, size);
      // The last bytes of an incomplete head may be the beginning of its end, which does not count.
      int length = end < 0 ? size - at - END + 1 : end - at;
      if (length > maxHead) refuse(BAD_REQUEST, effects);
      else if (end < 0) break;
      else serve(data, at, end, effects);
      at = end + END;
    }
    return Math.min(at, size);
  }

  private static int endOfHead(byte[] data, int from, int size) {
    for (int i = from; i + END <= size; ++i)
      if (data[i] == '\r' && data[i + 1] == '\n' && data[i + 2] == '\r' && data[i + 3] == '\n') return i;
    return -1;
  }

  private void serve(byte[] data, int from, int to, Effects effects) {
    String status = parse(data, from, to);
    if (!status.equals(OK)) {
      refuse(status, effects);
      return;
    }
    totals.requests.increment();
    effects.serve(options.burns, options.serviceTime);
    respond(OK, data, targetFrom, targetTo, wantsBody, connection, effects);
    if (connection.equals("close")) close(effects);
  }

  private void refuse(String status, Effects effects) {
    respond(status, NOTHING, 0, 0, false, "close", effects);
    protocolError(effects);
  }

  private static void respond(
      String status, byte[] body, int from, int to, boolean withBody, String connection, Effects effects) {
    byte[] head = ascii("HTTP/1.1 " + status + "\r\nDate: " + date()
        + "\r\nContent-Type: text/plain\r\nContent-Length: " + (to - from)
        + (connection.isEmpty() ? "" : "\r\nConnection: " + connection) + "\r\n\r\n");
    effects.reply(head, head.length, body, from, withBody ? to - from : 0);
  }

  /** The time as a header has it (RFC 9110, 5.6.7), made once a second. */
  private static String date() {
    long second = System.currentTimeMillis() / 1000;
    Dated last = dated;
    if (last.second != second) dated = last = new Dated(second);
    return last.text;
  }

  private static final class Dated {
    private static final DateTimeFormatter FORMAT =
        DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH).withZone(ZoneOffset.UTC);
    final long second;
    final String text;

    Dated(long second) {
      this.second = second;
      text = second < 0 ? "" : FORMAT.format(Instant.ofEpochSecond(second));
    }
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  /** The status of a head, OK when it is good. */
  private String parse(byte[] data, int from, int to) {
    int line = endOfLine(data, from, to);
    int method = tokenEnd(data, from, line);
    if (method == from || method == line || data[method] != ' ') return BAD_REQUEST;
    targetFrom = method + 1;
    targetTo = targetFrom;
    while (targetTo < line && data[targetTo] > ' ' && data[targetTo] < 0x7f) ++targetTo;
    boolean good = targetTo > targetFrom && targetTo < line && data[targetTo] == ' ';
    if (!good || !is(data, targetTo + 1, line - 1, "HTTP/1.", false)) return BAD_REQUEST;
    if (data[line - 1] != '0' && data[line - 1] != '1') return BAD_REQUEST;
    boolean isNew = data[line - 1] == '1';
    int hosts = 0;
    boolean saysClose = false;
    boolean saysKeepAlive = false;
    boolean hasBody = false;
    for (int at = line + 2; at <= to; at = line + 2) {
      line = endOfLine(data, at, to);
      int colon = tokenEnd(data, at, line);
      if (colon == at || colon == line || data[colon] != ':' || !isValue(data, colon + 1, line)) return BAD_REQUEST;
      if (is(data, at, colon, "host", true)) {
        ++hosts;
      } else if (is(data, at, colon, "connection", true)) {
        saysClose |= lists(data, colon + 1, line, "close");
        saysKeepAlive |= lists(data, colon + 1, line, "keep-alive");
      } else if (is(data, at, colon, "transfer-encoding", true)) {
        hasBody = true;
      } else if (is(data, at, colon, "content-length", true)) {
        int first = skipBlanks(data, colon + 1, line);
        if (!is(data, first, trimmed(data, first, line), "0", false)) hasBody = true;
      }
    }
    if (hosts > 1 || (hosts == 0 && isNew)) return BAD_REQUEST;
    wantsBody = is(data, from, method, "GET", false);
    if (!wantsBody && !is(data, from, method, "HEAD", false)) return NOT_IMPLEMENTED; // RFC 9110, 9.1: also with a body
    if (hasBody) return BAD_REQUEST;
    connection = saysClose || (!isNew && !saysKeepAlive) ? "close" : isNew ? "" : "keep-alive";
    return OK;
  }

  private static boolean isValue(byte[] data, int from, int to) {
    for (int i = from; i < to; ++i) if (data[i] == 0 || data[i] == '\r' || data[i] == '\n') return false;
    return true;
  }

  private static int endOfLine(byte[] data, int from, int to) {
    for (int i = from; i + 1 < to; ++i) if (data[i] == '\r' && data[i + 1] == '\n') return i;
    return to;
  }

  private static int tokenEnd(byte[] data, int from, int to) {
    int at = from;
    while (at < to && isToken(data[at])) ++at;
    return at;
  }

  private static boolean isToken(byte c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || PUNCTUATION.indexOf(c) >= 0;
  }

  private static boolean is(byte[] data, int from, int to, String text, boolean anyCase) {
    if (to - from != text.length()) return false;
    for (int i = 0; i < text.length(); ++i) {
      int c = data[from + i];
      if (anyCase && c >= 'A' && c <= 'Z') c += 'a' - 'A';
      if (c != text.charAt(i)) return false;
    }
    return true;
  }

  private static int skipBlanks(byte[] data, int from, int to) {
    int at = from;
    while (at < to && (data[at] == ' ' || data[at] == '\t')) ++at;
    return at;
  }

  private static int trimmed(byte[] data, int from, int to) {
    int end = to;
    while (end > from && (data[end - 1] == ' ' || data[end - 1] == '\t')) --end;
    return end;
  }

  /** A header's comma-separated list (RFC 9110, 5.6.1) holds `token`. */
  private static boolean lists(byte[] data, int from, int to, String token) {
    for (int at = from; at <= to; ) {
      int comma = at;
      while (comma < to && data[comma] != ',') ++comma;
      int first = skipBlanks(data, at, comma);
      if (is(data, first, trimmed(data, first, comma), token, true)) return true;
      at = comma + 1;
    }
    return false;
  }
}
