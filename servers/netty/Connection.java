import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.ChannelInputShutdownReadComplete;
import io.netty.channel.socket.DuplexChannel;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import netdyno.Burn;
import netdyno.Effects;
import netdyno.Lifecycle;
import netdyno.Options;
import netdyno.Session;

/**
 * One client, as a handler of its channel. A read goes to the session, and its effects are carried out one after the
 * other; one that takes time ends goOn(), and a callback of the loop comes back to go on. All on one thread.
 */
final class Connection extends ChannelInboundHandlerAdapter {
  private final Channel channel;
  private final Shard shard;
  private final Options options;
  private final Session session;
  private final Effects effects;
  private final boolean chats;
  private final boolean flushesEach; // write
  private int next; // of the effects that are left
  private boolean busy; // an effect takes time
  private byte[] held; // what has arrived meanwhile: a read or two, for then reading pauses
  private boolean ended; // by the peer
  private boolean closing; // by the session
  private boolean gone;
  private boolean flushDue;
  private boolean reading; // what is written meanwhile leaves after the read
  private final ArrayDeque<ByteBuf> outbox = new ArrayDeque<>(); // frames for which the channel has no room
  private long waiting; // held by what is in the outbox and with the channel
  private int frameHeader; // of every frame
  private boolean passing; // a frame is being given to the channel
  private boolean lastDue; // the end follows what is in the outbox

  Connection(Channel channel, Shard shard) {
    this.channel = channel;
    this.shard = shard;
    options = shard.options;
    session = Session.make(options, shard.totals);
    effects = new Effects(options.split);
    chats = options.workload.equals("chat");
    flushesEach = options.split || (options.single && chats);
  }

  // --- what the loop calls ---

  @Override
  public void channelActive(ChannelHandlerContext context) {
    shard.join(this);
  }

  @Override
  public void channelRead(ChannelHandlerContext context, Object message) {
    ByteBuf bytes = (ByteBuf) message;
    int size = bytes.readableBytes();
    reading = true;
    if (busy) {
      int before = held == null ? 0 : held.length; // an end of the stream is read although reading pauses
      held = held == null ? new byte[size] : Arrays.copyOf(held, before + size);
      bytes.readBytes(held, before, size);
      channel.config().setAutoRead(false);
    } else {
      bytes.readBytes(shard.scratch, 0, size);
      receive(shard.scratch, size);
    }
    bytes.release();
  }

  @Override
  public void channelReadComplete(ChannelHandlerContext context) {
    reading = false;
    flushReplies();
  }

  @Override
  public void userEventTriggered(ChannelHandlerContext context, Object event) {
    boolean byPeer = event instanceof ChannelInputShutdownEvent;
    boolean byUs = event instanceof ChannelInputShutdownReadComplete;
    if ((!byPeer && !byUs) || ended) return;
    ended = true;
    if (closing) channel.close();
    else if (!busy) readOn();
  }

  @Override
  public void channelWritabilityChanged(ChannelHandlerContext context) {
    drain();
    if (!busy) readOn();
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
    if (!(error instanceof IOException)) error.printStackTrace();
    channel.close(); // the peer is gone, which concerns no other client
  }

  @Override
  public void channelInactive(ChannelHandlerContext context) {
    gone = true;
    for (ByteBuf frame : outbox) frame.release();
    outbox.clear();
    session.discard();
    shard.left(this);
  }

  // --- what the shard calls ---

  /**
   * Gives the channel a frame; false where too much would wait for this reader: one frame always may. What a channel
   * keeps of a message takes some hundreds of bytes, so what it does not take soon waits here.
   */
  boolean deliver(ByteBuf frame, int header) {
    frameHeader = header;
    long held = frame.readableBytes() + Effects.FRAME_OVERHEAD;
    for (long before = Long.MAX_VALUE; !hasRoom(held) && waiting < before; ) {
      before = waiting;
      channel.flush(); // what the channel holds; what the outbox holds comes after it
    }
    if (!hasRoom(held)) return false;
    waiting += Effects.FRAME_OVERHEAD;
    if (outbox.isEmpty() && channel.isWritable() && !passing) {
      pass(frame);
    } else {
      waiting += frame.readableBytes();
      outbox.add(frame.retain());
    }
    return true;
  }

  private boolean hasRoom(long held) {
    return waiting == 0 || waiting + held <= options.outboxLimit;
  }

  private void pass(ByteBuf frame) {
    passing = true; // a flush may find that the channel has room again
    if (options.split) {
      write(frame.retainedSlice(0, frameHeader), 0);
      write(frame.retainedSlice(frameHeader, frame.readableBytes() - frameHeader), Effects.FRAME_OVERHEAD);
    } else {
      write(frame.retainedDuplicate(), Effects.FRAME_OVERHEAD);
    }
    passing = false;
  }

  /** Writes what waits in the outbox, as long as the channel has room. */
  private void drain() {
    if (passing) return;
    while (!outbox.isEmpty() && channel.isWritable()) {
      ByteBuf frame = outbox.poll();
      waiting -= frame.readableBytes();
      pass(frame);
      frame.release();
    }
    if (lastDue && outbox.isEmpty()) {
      lastDue = false;
      writeLast();
    }
  }

  void giveUpSlow() {
    if (gone || !channel.isActive()) return;
    shard.totals.slowClosed.increment();
    channel.close();
  }

  void flushNow() {
    flushDue = false;
    channel.flush();
  }

  /** Of chat, the shard flushes what its members have for this one. */
  private void flushReplies() {
    if (flushDue && !chats && !reading) flushNow();
  }

  /** Ends the input at what has arrived: that is read, and then the end. */
  void stopReceiving() {
    ((DuplexChannel) channel).shutdownInput();
  }

  // --- effects ---

  private void receive(byte[] data, int size) {
    effects.clear();
    session.receive(data, size, effects);
    next = 0;
    goOn();
  }

  private void end() {
    effects.clear();
    session.end(effects);
    next = 0;
    goOn();
  }

  private void goOn() {
    carryOut();
    flushReplies();
  }

  /** Carries out effects, from the first that is left, until one takes time. */
  private void carryOut() {
    busy = true;
    boolean burnt = false; // one a turn: then the loop serves others
    while (next < effects.count() && !gone) {
      int i = next++;
      switch (effects.kind(i)) {
        case WRITE:
          ByteBuf reply = channel.alloc().directBuffer(effects.size(i));
          write(reply.writeBytes(effects.storage(), effects.from(i), effects.size(i)), 0);
          break;
        case BROADCAST:
          if (!shard.broadcast(effects.frame(i), this, this::goOn)) return;
          break;
        case WAIT:
          if (shard.backend != null) {
            shard.backend.ask(effects.duration(i), shard.loop, this::goOn);
            return;
          }
          shard.loop.schedule(this::goOn, effects.duration(i), TimeUnit.NANOSECONDS);
          return;
        case BURN:
          if (!burnt && burn(effects.duration(i))) {
            burnt = true;
            break;
          }
          if (burnt) burnLater(effects.duration(i));
          return;
        default:
          finish();
      }
    }
    busy = false;
    readOn();
  }

  /**
   * In slices, between which the loop serves others. It would run plain tasks for a second before it did. Returns
   * whether the first was all.
   */
  private boolean burn(long duration) {
    long left = gone ? 0 : Burn.cpu(duration);
    if (left > 0) burnLater(left);
    return left <= 0;
  }

  private void burnLater(long left) {
    shard.loop.schedule(() -> { if (burn(left)) goOn(); }, 1, TimeUnit.NANOSECONDS);
  }

  /**
   * With what was held back, then with the socket or its end; but who does not take its replies is not read. Broadcasts
   * are no replies: their bound is the outbox limit.
   */
  private void readOn() {
    if (gone) return;
    if (ended && held == null) {
      if (!closing) end();
    } else if (!channel.isWritable() && !chats && !closing) {
      channel.config().setAutoRead(false);
    } else if (held != null) {
      byte[] data = held;
      held = null;
      receive(data, data.length);
    } else if (!channel.config().isAutoRead()) {
      channel.config().setAutoRead(true);
    }
  }

  /** Split, or of chat single: each write leaves by itself. Else with what else a read brings, in chat a turn. */
  private void write(ByteBuf bytes, int overhead) {
    int size = bytes.readableBytes();
    waiting += size;
    ChannelFutureListener done = future -> {
      waiting -= size + overhead;
      if (future.isSuccess()) shard.totals.bytesOut.add(size);
    };
    if (flushesEach) {
      channel.writeAndFlush(bytes).addListener(done);
    } else {
      channel.write(bytes).addListener(done);
      if (!flushDue && chats) shard.flushLater(this);
      flushDue = true;
    }
  }

  /**
   * Closes once all is sent. Where the peer has not ended its stream, only ours is ended, and what still comes is read
   * (the session ignores it): a close with unread bytes resets the connection, and the peer would lose the replies that
   * are on their way (RFC 9112, 9.6).
   */
  private void finish() {
    closing = true;
    shard.mute(this);
    if (outbox.isEmpty()) writeLast();
    else lastDue = true;
    if (!ended) shard.loop.schedule(this::endLinger, Lifecycle.LINGER_MS, TimeUnit.MILLISECONDS);
  }

  private void writeLast() {
    ChannelFutureListener sent = future -> {
      if (ended) channel.close();
      else ((DuplexChannel) channel).shutdownOutput();
    };
    (options.tls == null ? channel.writeAndFlush(Unpooled.EMPTY_BUFFER) : Encryption.end(channel)).addListener(sent);
  }

  private void endLinger() {
    if (gone) return;
    if (waiting > 0) shard.loop.schedule(this::endLinger, Lifecycle.LINGER_MS, TimeUnit.MILLISECONDS);
    else channel.close();
  }
}
