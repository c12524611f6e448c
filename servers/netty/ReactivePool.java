import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.epoll.EpollSocketChannel;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import netdyno.BackendPool;
import netdyno.Options;

/**
 * The connections to the backend, one question in flight on each (protocol/WIRE.md, Backend), on the loops of the
 * clients. A question without a free one waits, in the order of arrival. Any loop may call it.
 */
final class ReactivePool {
  private static final int HEADER = 4; // bytes of a frame's length

  private record Question(long duration, EventLoop loop, Runnable then) {}

  private final ArrayDeque<Asked> free = new ArrayDeque<>(); // guarded by this
  private final ArrayDeque<Question> waiting = new ArrayDeque<>(); // guarded by this

  /** Ends the program where there is no backend. */
  ReactivePool(Options options, EventLoopGroup group) throws InterruptedException {
    InetSocketAddress address = new InetSocketAddress(options.backendHost, options.backendPort);
    for (int i = 0; i < options.pool; ++i) {
      Asked asked = new Asked();
      Bootstrap bootstrap = new Bootstrap().group(group).channel(EpollSocketChannel.class).handler(asked);
      ChannelFuture connected = bootstrap.option(ChannelOption.TCP_NODELAY, true).connect(address).await();
      if (!connected.isSuccess()) BackendPool.dieUnconnected(options, connected.cause());
      asked.channel = connected.channel();
      free.add(asked);
    }
  }

  /** Calls `then` on the loop when the backend has replied after so many nanoseconds. */
  void ask(long duration, EventLoop loop, Runnable then) {
    Question question = new Question(duration, loop, then);
    Asked asked;
    synchronized (this) {
      asked = free.poll();
      if (asked == null) waiting.add(question);
    }
    if (asked != null) asked.ask(question);
  }

  private void giveBack(Asked asked) {
    Question next;
    synchronized (this) {
      next = waiting.poll();
      if (next == null) free.add(asked);
    }
    if (next != null) asked.ask(next);
  }

  private final class Asked extends ChannelInboundHandlerAdapter {
    private Channel channel;
    private Question question;
    private final ByteBuf answer = Unpooled.buffer();

    /** From any thread: the write hands the question to the channel's loop. */
    void ask(Question asked) {
      question = asked;
      channel.writeAndFlush(Unpooled.wrappedBuffer(BackendPool.question(asked.duration)));
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
      ByteBuf bytes = (ByteBuf) message;
      answer.writeBytes(bytes);
      bytes.release();
      if (answer.readableBytes() < HEADER || answer.readableBytes() < HEADER + answer.getInt(0)) return;
      answer.clear();
      Question answered = question;
      giveBack(this);
      if (answered.loop.inEventLoop()) answered.then.run();
      else answered.loop.execute(answered.then);
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
      BackendPool.dieUnanswered();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable gone) {
      BackendPool.dieUnanswered();
    }
  }
}
