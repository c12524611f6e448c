package netdyno;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.Locale;

/**
 * HTTP/1.1 GET and HEAD with keep-alive and pipelining (RFC 9112); the reply's body is the request target. By hand, as
 * the contract is about bytes: a codec would answer malformed requests its own way. Of the workload web (WebQuery) also
 * POST.
 */
final class HttpSession extends Session {
  private static final int MAX_HEAD = 16 << 10;
  private static final int END = 4; // bytes of the CRLF CRLF that ends a head
  private static final int EMPTY_LINE = 2;
  private static final String PUNCTUATION = "!#$%&'*+-.^_`|~";

  private static final String TEXT = "text/plain";
  private static final String JSON = "application/json";
  private static final byte[] ITEMS =
      ascii("[{\"id\":1,\"name\":\"one\"},{\"id\":2,\"name\":\"two\"},{\"id\":3,\"name\":\"three\"}]");
  private static final String OK = "200 OK";
  private static final String BAD_REQUEST = "400 Bad Request";
  private static final String NOT_IMPLEMENTED = "501 Not Implemented";
  private static final byte[] NOTHING = {};
  private static volatile Dated dated = new Dated(-1);

  private final boolean answersWeb;
  private final int maxHead;
  // Of the head that was parsed last.
  private int targetFrom;
  private int targetTo;
  private boolean wantsBody; // not of HEAD
  private boolean posts;
  private long bodySize;
  private String connection; // what the reply says of it; empty where it stays by default

  HttpSession(Options options, Totals totals) {
    super(options, totals);
    answersWeb = options.workload.equals("web");
    maxHead = Math.min(MAX_HEAD, options.maxFrame);
    wanted = EMPTY_LINE;
  }

  @Override
  int consume(byte[] data, int size, Effects effects) {
    int at = 0;
    wanted = EMPTY_LINE;
    while (!closed) {
      while (at + 1 < size && data[at] == '\r' && data[at + 1] == '\n') at += 2; // RFC 9112, 2.2
      int end = endOfHead(data, at, size);
      // The last bytes of an incomplete head may be the beginning of its end, which does not count.
      int length = end < 0 ? size - at - END + 1 : end - at;
      if (length > maxHead) refuse(BAD_REQUEST, effects);
      else if (end < 0) break;
      else if (serve(data, at, end, size, effects)) at = end + END + (int) bodySize;
      else break;
    }
    return at;
  }

  private static int endOfHead(byte[] data, int from, int size) {
    for (int i = from; i + END <= size; ++i)
      if (data[i] == '\r' && data[i + 1] == '\n' && data[i + 2] == '\r' && data[i + 3] == '\n') return i;
    return -1;
  }

  /** False, and nothing is done, where the body of the request is not there yet. */
  private boolean serve(byte[] data, int from, int to, int size, Effects effects) {
    String status = parse(data, from, to);
    if (!status.equals(OK) || bodySize > options.maxFrame) {
      refuse(status.equals(OK) ? BAD_REQUEST : status, effects);
      return true;
    }
    int whole = to + END + (int) bodySize - from;
    if (size - from < whole) {
      wanted = whole;
      return false;
    }
    if (!answersWeb) {
      effects.serve(options.burns, options.serviceTime);
      respond(TEXT, data, targetFrom, targetTo, effects);
    } else if (!answerWeb(new String(data, targetFrom, targetTo - targetFrom, StandardCharsets.ISO_8859_1), effects)) {
      refuse(BAD_REQUEST, effects);
      return true;
    }
    totals.requests.increment();
    if (connection.equals("close")) close(effects);
    return true;
  }

  /** False where the request is to be refused. */
  private boolean answerWeb(String target, Effects effects) {
    int mark = target.indexOf('?');
    String path = mark < 0 ? target : target.substring(0, mark);
    if (path.equals("/items")) {
      byte[] body = posts ? ascii(Long.toString(bodySize)) : ITEMS;
      respond(JSON, body, 0, body.length, effects);
      return true;
    }
    WebQuery query = WebQuery.parse(mark < 0 ? "" : target.substring(mark + 1));
    if (query == null || !path.startsWith("/") || posts || query.size() > options.maxFrame) return false;
    effects.serve(false, query.waitNs());
    effects.serve(true, query.cpuNs());
    byte[] body = new byte[Math.max(path.length() - 1, (int) query.size())];
    Arrays.fill(body, path.length() - 1, body.length, (byte) 'x');
    System.arraycopy(ascii(path), 1, body, 0, path.length() - 1);
    respond(TEXT, body, 0, body.length, effects);
    return true;
  }

  private void refuse(String status, Effects effects) {
    writeReply(status, TEXT, NOTHING, 0, 0, false, "close", effects);
    protocolError(effects);
  }

  private void respond(String type, byte[] body, int from, int to, Effects effects) {
    writeReply(OK, type, body, from, to, wantsBody, connection, effects);
  }

  private static void writeReply(String status, String type, byte[] body, int from, int to, boolean withBody,
      String connection, Effects effects) {
    byte[] head = ascii("HTTP/1.1 " + status + "\r\nDate: " + date()
        + "\r\nContent-Type: " + type + "\r\nContent-Length: " + (to - from)
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
    posts = answersWeb && is(data, from, method, "POST", false);
    bodySize = 0;
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
        String value = new String(data, first, trimmed(data, first, line) - first, StandardCharsets.ISO_8859_1);
        if (posts) bodySize = WebQuery.parseNumber(value, "");
        else if (!value.equals("0")) hasBody = true;
        if (bodySize < 0) return BAD_REQUEST;
      }
    }
    if (hosts > 1 || (hosts == 0 && isNew)) return BAD_REQUEST;
    wantsBody = !is(data, from, method, "HEAD", false);
    if (wantsBody && !posts && !is(data, from, method, "GET", false))
      return NOT_IMPLEMENTED; // RFC 9110, 9.1: also with a body
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
