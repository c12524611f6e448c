import reactor.core.publisher.Mono;
import reactor.netty.http.server.HttpServer;
import reactor.netty.http.server.HttpServerRequest;
import reactor.netty.http.server.HttpServerResponse;
import reactor.netty.resources.LoopResources;

import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;

/** The workload web by Reactor Netty: event loops that nothing may block. */
public final class Main {
    private static final String ITEMS =
            "[{\"id\":1,\"name\":\"one\"},{\"id\":2,\"name\":\"two\"},{\"id\":3,\"name\":\"three\"}]";

    /** The number after a name in a URI; 0 where it is not there. */
    private static long findNumber(String uri, String name) {
        int place = uri.indexOf(name + "=");
        if (place < 0) {
            return 0;
        }
        int first = place + name.length() + 1;
        int end = first;
        while (end < uri.length() && Character.isDigit(uri.charAt(end))) {
            end++;
        }
        return Long.parseLong(uri, first, end, 10);
    }

    /** Busy by the clock. */
    private static void burn(long microseconds) {
        for (long end = System.nanoTime() + 1000 * microseconds; System.nanoTime() < end; ) {
            Thread.onSpinWait();
        }
    }

    private static String compute(String stamp, String uri) {
        burn(findNumber(uri, "cpu"));
        return stamp + "x".repeat((int) Math.max(0, findNumber(uri, "size") - stamp.length()));
    }

    /** Waits on the connection's own event loop: Mono.delay would go on on a thread of another pool. */
    private static Mono<Void> waitOnLoop(HttpServerResponse response, long microseconds) {
        return Mono.create(sink -> response.withConnection(connection ->
                connection.channel().eventLoop().schedule(() -> sink.success(), microseconds, TimeUnit.MICROSECONDS)));
    }

    private static Mono<Void> answer(HttpServerRequest request, HttpServerResponse response) {
        String uri = request.uri();
        String stamp = request.param("stamp");
        long wait = findNumber(uri, "wait");
        Mono<String> body = wait > 0
                ? waitOnLoop(response, wait).then(Mono.fromCallable(() -> compute(stamp, uri)))
                : Mono.fromCallable(() -> compute(stamp, uri));
        return response.header("Content-Type", "text/plain").sendString(body).then();
    }

    private static Mono<Void> countBytes(HttpServerRequest request, HttpServerResponse response) {
        Mono<String> count = request.receive().aggregate().map(body -> "" + body.readableBytes()).defaultIfEmpty("0");
        return response.header("Content-Type", "application/json").sendString(count).then();
    }

    public static void main(String[] arguments) {
        HttpServer.create()
                .bindAddress(() -> new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])))
                .runOn(LoopResources.create("http", Integer.parseInt(arguments[2]), true))
                .route(routes -> routes
                        .get("/items", (request, response) ->
                                response.header("Content-Type", "application/json").sendString(Mono.just(ITEMS)))
                        .post("/items", Main::countBytes)
                        .get("/{stamp}", Main::answer))
                .bindNow()
                .onDispose()
                .block();
    }
}
