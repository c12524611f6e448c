package netdyno;

/** Source A's request and response: Protobuf, parsed and serialised, with an optional service time. */
final class RpcSession extends FramedSession {
  private static final int MAX_WORKLOAD_US = 10_000_000;

  private final Protobuf request = new Protobuf();
  private final byte[] header = new byte[HEADER];

  RpcSession(Options options, Totals totals) {
    super(options, totals);
  }

  @Override
  void onFrame(byte[] data, int from, int to, Effects effects) {
    if (!request.parse(data, from + HEADER, to) || request.workload < 0 || request.workload > MAX_WORKLOAD_US) {
      protocolError(effects);
      return;
    }
    totals.requests.increment();
    effects.serve(options.burns, options.serviceTime + request.workload * 1000L);
    byte[] response = request.response(data);
    putLength(header, response.length);
    effects.reply(header, HEADER, response, 0, response.length);
  }
}
