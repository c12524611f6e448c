import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.socket.SocketProtocolFamily;
import io.netty.util.concurrent.EventExecutor;
import java.net.Inet6Address;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import netdyno.Burn;
import netdyno.Lifecycle;
import netdyno.Options;
import netdyno.Totals;

/** Netty: N event loops over epoll, by its native transport; a connection stays on one of them. */
public final class Main {
  private static final int QUIET_TURNS = 4;

  private final Options options;
  private final Totals totals = new Totals();
  private final Map<EventExecutor, Shard> shards = new HashMap<>();
  private final AtomicBoolean stopping = new AtomicBoolean();
  private Channel listener;

  public static void main(String[] arguments) throws InterruptedException {
    new Main(Options.readOrExit("netty", arguments)).run();
  }

  private Main(Options options) {
    this.options = options;
  }

  private void run() throws InterruptedException {
    if (options.burns) Burn.prepare();
    Encryption encryption = options.tls == null ? null : new Encryption(options, totals);
    Totals counted = encryption == null ? totals : totals.behindTls();
    MultiThreadIoEventLoopGroup group = new MultiThreadIoEventLoopGroup(options.threads, EpollIoHandler.newFactory());
    ReactivePool backend = options.backendHost == null ? null : new ReactivePool(options, group);
    for (EventExecutor loop : group) {
      shards.put(loop, new Shard((EventLoop) loop, options, counted, backend, shards.values()));
      loop.submit(() -> {}).sync(); // a loop starts its thread with its first task
    }
    ServerBootstrap bootstrap = new ServerBootstrap();
    InetSocketAddress address = new InetSocketAddress(options.host, options.port);
    // By default it would listen for IPv4 on a socket of IPv6.
    SocketProtocolFamily family =
        address.getAddress() instanceof Inet6Address ? SocketProtocolFamily.INET6 : SocketProtocolFamily.INET;
    bootstrap.group(group).channelFactory(() -> new EpollServerSocketChannel(family));
    bootstrap.option(ChannelOption.SO_BACKLOG, options.backlog);
    bootstrap.option(ChannelOption.SO_REUSEADDR, true);
    bootstrap.childOption(ChannelOption.TCP_NODELAY, options.nodelay);
    bootstrap.childOption(ChannelOption.ALLOW_HALF_CLOSURE, true);
    bootstrap.childOption(ChannelOption.RECVBUF_ALLOCATOR, new FixedRecvByteBufAllocator(options.readBuffer));
    bootstrap.childHandler(new ChannelInitializer<Channel>() {
      @Override
      protected void initChannel(Channel channel) {
        if (encryption != null) encryption.addTo(channel);
        channel.pipeline().addLast(new Connection(channel, shards.get(channel.eventLoop())));
      }
    });
    ChannelFuture bound = bootstrap.bind(address).await();
    if (!bound.isSuccess()) Lifecycle.dieListening(options, bound.cause());
    listener = bound.channel();
    listener.pipeline().addLast(new ChannelInboundHandlerAdapter() {
      @Override
      public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
        // accept(2) failed: that concerns the peer alone, or what is scarce now; the handler before this one has paused
        // accepting. Logging it would need a descriptor (for the time zones), and without one it would end the loop.
      }
    });
    Lifecycle.onTermination(this::stop);
    Lifecycle.announceReady((InetSocketAddress) listener.localAddress());
  }

  /** Waits until no client comes in some turns of the listener's loop: one turn accepts, another registers. */
  private void acceptWhoWaits(long end) {
    long before = totals.connections.sum();
    for (int quiet = 0; quiet < QUIET_TURNS && System.nanoTime() < end; ++quiet) {
      listener.eventLoop().schedule(() -> {}, 1, TimeUnit.MILLISECONDS).awaitUninterruptibly(Lifecycle.GRACE_MS);
      long now = totals.connections.sum();
      if (now != before) quiet = 0;
      before = now;
    }
  }

  /** Stops accepting, ends every stream at what has arrived, and ends the program. On a thread of the signal's own. */
  private void stop() {
    if (stopping.getAndSet(true)) return;
    long end = System.nanoTime() + Lifecycle.GRACE_MS * 1_000_000;
    acceptWhoWaits(end);
    listener.close().awaitUninterruptibly(Lifecycle.GRACE_MS);
    for (Shard shard : shards.values()) shard.stop();
    for (Shard shard : shards.values()) shard.awaitEnd(end - System.nanoTime());
    Lifecycle.finish(totals);
  }
}
