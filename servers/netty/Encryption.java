import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.handler.codec.DecoderException;
import io.netty.handler.ssl.SslCloseCompletionEvent;
import io.netty.handler.ssl.SslHandler;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import netdyno.Certificate;
import netdyno.Options;
import netdyno.Totals;

/** What is between a channel and its Connection where it speaks TLS: handlers, of which that knows nothing. */
final class Encryption {
  /** The plain bytes of a record, at most (RFC 8446, 5.1). */
  static final int LARGEST_RECORD = 16 << 10;

  private final SSLContext context;
  private final Totals totals;

  Encryption(Options options, Totals totals) {
    context = Certificate.load(options);
    this.totals = totals;
  }

  void addTo(Channel channel) {
    SSLEngine engine = context.createSSLEngine();
    engine.setUseClientMode(false);
    SslHandler tls = new SslHandler(engine);
    tls.setHandshakeTimeoutMillis(0); // no server here has one
    channel.pipeline().addLast(new Counter(), tls, new Translator());
  }

  /** Sends all that is written, and close_notify: behind that nothing is encrypted any more. */
  static ChannelFuture end(Channel channel) {
    channel.flush();
    return channel.pipeline().get(SslHandler.class).closeOutbound();
  }

  /** Counts encrypted bytes. */
  private final class Counter extends ChannelDuplexHandler {
    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
      totals.bytesIn.add(((ByteBuf) message).readableBytes());
      context.fireChannelRead(message);
    }

    @Override
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
      int size = ((ByteBuf) message).readableBytes();
      context.write(message, promise).addListener(sent -> {
        if (sent.isSuccess()) totals.bytesOut.add(size);
      });
    }
  }

  /** Says of TLS what a Connection knows of TCP: that the peer has ended its stream, and that a connection broke. */
  private final class Translator extends ChannelInboundHandlerAdapter {
    private boolean broken;

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
      context.fireUserEventTriggered(
          event == SslCloseCompletionEvent.SUCCESS ? ChannelInputShutdownEvent.INSTANCE : event);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
      boolean ofTls = error instanceof DecoderException && error.getCause() instanceof SSLException;
      if (ofTls && !broken) totals.protocolErrors.increment();
      broken |= ofTls;
      context.fireExceptionCaught(ofTls ? error.getCause() : error);
    }
  }
}
