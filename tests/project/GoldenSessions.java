import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import netdyno.Effects;
import netdyno.Options;
import netdyno.Session;
import netdyno.Totals;

/**
 * What the sessions of servers in Java make of a stream, for test_java.py. A line of input is a connection: its options,
 * `ends` or `stays`, and its slices in hexadecimal digits. Each effect is a line, and the totals are the last one.
 */
final class GoldenSessions {
  private static final HexFormat HEX = HexFormat.of();

  public static void main(String[] none) throws Exception {
    StringBuilder said = new StringBuilder();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] parts = line.split("\t", -1);
      Options options = new Options("server", parts[0]);
      Totals totals = new Totals();
      Session session = Session.make(options, totals);
      Effects effects = new Effects(options.split);
      for (int i = 2; i < parts.length; ++i) {
        byte[] slice = HEX.parseHex(parts[i]);
        session.receive(slice, slice.length, effects);
        java.util.Arrays.fill(slice, (byte) '?'); // as a server's read buffer is written over
        tell(effects, options.split, said);
      }
      if (parts[1].equals("ends")) session.end(effects);
      tell(effects, options.split, said);
      said.append("totals ").append(totals.requests.sum()).append(' ').append(totals.protocolErrors.sum()).append('\n');
    }
    System.out.print(said);
  }

  private static void tell(Effects effects, boolean split, StringBuilder said) {
    for (int i = 0; i < effects.count(); ++i) {
      switch (effects.kind(i)) {
        case WRITE:
          int from = effects.from(i);
          said.append("write ").append(HEX.formatHex(effects.storage(), from, from + effects.size(i)));
          break;
        case BROADCAST:
          Effects.Frame frame = effects.frame(i);
          int header = split ? frame.header() : 0;
          said.append("broadcast ").append(HEX.formatHex(frame.bytes(), 0, header)).append(split ? " " : "");
          said.append(HEX.formatHex(frame.bytes(), header, frame.bytes().length));
          break;
        case WAIT:
          said.append("wait ").append(effects.duration(i));
          break;
        case BURN:
          said.append("burn ").append(effects.duration(i));
          break;
        default:
          said.append("close");
      }
      said.append('\n');
    }
    effects.clear();
  }
}
