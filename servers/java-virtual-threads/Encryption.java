import java.io.EOFException;
import java.io.FilterInputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketImpl;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocketFactory;
import netdyno.Certificate;
import netdyno.Options;
import netdyno.Totals;

/** TLS over sockets, which count what it makes of their bytes. Any thread may call it. */
final class Encryption {
  private final SSLSocketFactory factory;
  private final Totals totals;

  Encryption(Options options, Totals totals) {
    factory = Certificate.load(options).getSocketFactory();
    this.totals = totals;
  }

  /** A listener whose sockets are fit for what follows. */
  ServerSocket listen() throws IOException {
    return new Listener();
  }

  /** What a socket's bytes go through. Its first read shakes hands; an end of its output is close_notify and a FIN. */
  Socket over(Socket socket) throws IOException {
    return factory.createSocket(socket, null, true);
  }

  /** Whether the peer did not speak TLS, or refused ours; no error is that it left, even amid the handshake. */
  static boolean isProtocolError(Exception error) {
    if (!(error instanceof SSLException)) return false;
    Throwable cause = error;
    while (cause != null && !(cause instanceof EOFException) && !(cause instanceof SocketException))
      cause = cause.getCause();
    return cause == null;
  }

  private final class Listener extends ServerSocket {
    Listener() throws IOException {}

    @Override
    public Socket accept() throws IOException {
      Socket socket = new CountingSocket();
      implAccept(socket);
      return socket;
    }
  }

  private final class CountingSocket extends Socket {
    CountingSocket() throws SocketException {
      super((SocketImpl) null); // as ServerSocket.accept does, which gives it a connected one
    }

    @Override
    public InputStream getInputStream() throws IOException {
      return new FilterInputStream(super.getInputStream()) {
        @Override
        public int read(byte[] into, int from, int most) throws IOException {
          int size = in.read(into, from, most);
          if (size > 0) totals.bytesIn.add(size);
          return size;
        }
      };
    }

    @Override
    public OutputStream getOutputStream() throws IOException {
      return new FilterOutputStream(super.getOutputStream()) {
        @Override
        public void write(byte[] bytes, int from, int size) throws IOException {
          out.write(bytes, from, size);
          totals.bytesOut.add(size);
        }
      };
    }
  }
}
