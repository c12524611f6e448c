package netdyno;

/** WorkMessage of protocol/work.proto by hand, from https://protobuf.dev/programming-guides/encoding/ alone. */
final class Protobuf {
  private static final int VARINT = 0;
  private static final int I64 = 1;
  private static final int LEN = 2;
  private static final int START_GROUP = 3;
  private static final int END_GROUP = 4;
  private static final int I32 = 5;
  private static final int MAX_DEPTH = 100; // as Google's parsers have it: nested groups must not exhaust the stack
  private static final int LONGEST_NUMBER = 70; // bits, 7 in each byte
  private static final int LONGEST_LENGTH = 35; // and tag

  // The request that was parsed last.
  int jobId;
  int workload;
  private int stampFrom;
  private int stampSize;

  // Where the reader is, and the field that it read last.
  private byte[] data;
  private int at;
  private int end;
  private boolean good;
  private int number;
  private int kind;
  private long value; // of a varint; of what has a length, that length, and it ends at `at`

  /**
   * Reads the WorkRequest of a WorkMessage. False where the bytes do not parse or hold no request. A repeated message
   * is merged, and the last member of the oneof counts.
   */
  boolean parse(byte[] bytes, int from, int to) {
    data = bytes;
    at = from;
    end = to;
    good = true;
    boolean found = false;
    clear();
    while (at < to && field(0)) {
      if (kind == END_GROUP) return false;
      if (kind != LEN || number > 2) continue;
      boolean isRequest = number == 1;
      if (!isRequest) clear(); // a response must parse too, but takes the place of the request
      members(at - (int) value, at, isRequest);
      end = to;
      found = isRequest;
    }
    return good && found;
  }

  private void clear() {
    jobId = workload = stampFrom = stampSize = 0;
  }

  private void members(int from, int to, boolean keep) {
    at = from;
    end = to;
    while (at < to && field(1)) {
      if (kind == END_GROUP) good = false;
      if (!keep) continue;
      if (kind == VARINT && number == 1) jobId = (int) value;
      if (kind == VARINT && number == 2) workload = (int) value;
      if (kind == LEN && number == 3) {
        stampSize = (int) value;
        stampFrom = at - stampSize;
      }
    }
    if (!good) at = to;
  }

  /** WorkMessage{WorkResponse{job_id, is_complete: true, stamp}} for the request, whose bytes are in `from`. */
  byte[] response(byte[] from) {
    int jobSize = jobId == 0 ? 0 : 1 + size(jobId);
    int stamp = stampSize == 0 ? 0 : 1 + size(stampSize) + stampSize;
    int fields = jobSize + 2 + stamp;
    byte[] bytes = new byte[1 + size(fields) + fields];
    bytes[0] = 2 << 3 | LEN;
    int to = put(bytes, 1, fields);
    if (jobSize > 0) {
      bytes[to++] = 1 << 3 | VARINT;
      to = put(bytes, to, jobId);
    }
    bytes[to++] = 2 << 3 | VARINT;
    bytes[to++] = 1;
    if (stamp > 0) {
      bytes[to++] = 3 << 3 | LEN;
      to = put(bytes, to, stampSize);
      System.arraycopy(from, stampFrom, bytes, to, stampSize);
    }
    return bytes;
  }

  /**
   * WorkMessage{WorkRequest{workload}} in a frame with a header: it asks for a reply after so many nanoseconds, in
   * whole microseconds.
   */
  static byte[] question(long duration) {
    int workload = (int) ((duration + 999) / 1000);
    int fields = 1 + size(workload);
    byte[] frame = new byte[FramedSession.HEADER + 2 + fields];
    FramedSession.putLength(frame, 2 + fields);
    int to = FramedSession.HEADER;
    frame[to++] = 1 << 3 | LEN;
    frame[to++] = (byte) fields;
    frame[to++] = 2 << 3 | VARINT;
    put(frame, to, workload);
    return frame;
  }

  private static int size(int unsigned) {
    int size = 1;
    for (int left = unsigned >>> 7; left > 0; left >>>= 7) ++size;
    return size;
  }

  private static int put(byte[] bytes, int to, int unsigned) {
    int left = unsigned;
    for (; left >>> 7 != 0; left >>>= 7) bytes[to++] = (byte) (left & 0x7f | 0x80);
    bytes[to++] = (byte) left;
    return to;
  }

  /** Reads the next field; groups are skipped. False where the bytes are no Protobuf. */
  private boolean field(int depth) {
    long tag = varint(LONGEST_LENGTH);
    number = (int) (tag >>> 3);
    kind = (int) tag & 7;
    if (number == 0 || tag >>> 32 != 0) return good = false;
    switch (kind) {
      case VARINT:
        value = varint(LONGEST_NUMBER);
        return good;
      case I64:
        value = 8;
        break;
      case I32:
        value = 4;
        break;
      case LEN:
        value = varint(LONGEST_LENGTH);
        break;
      case START_GROUP:
        return group(depth + 1);
      case END_GROUP:
        return good;
      default:
        return good = false;
    }
    if (value < 0 || value > end - at) return good = false;
    at += (int) value;
    return good;
  }

  private boolean group(int depth) {
    int begun = number;
    if (depth > MAX_DEPTH) return good = false;
    do {
      if (!field(depth)) return false;
    } while (kind != END_GROUP);
    good = number == begun;
    kind = START_GROUP;
    return good;
  }

  private long varint(int longest) {
    long read = 0;
    for (int shift = 0; shift < longest; shift += 7) {
      if (at >= end) break;
      byte b = data[at++];
      read |= (long) (b & 0x7f) << shift;
      if (b >= 0) return read;
    }
    good = false;
    return 0;
  }
}
