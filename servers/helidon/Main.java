import io.helidon.http.HeaderNames;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;

import java.net.InetAddress;
import java.util.concurrent.locks.LockSupport;

/** The workload web by Helidon: a virtual thread for each connection. */
public final class Main {
    private static final String ITEMS =
            "[{\"id\":1,\"name\":\"one\"},{\"id\":2,\"name\":\"two\"},{\"id\":3,\"name\":\"three\"}]";

    private static long numberOf(ServerRequest request, String name) {
        return Long.parseLong(request.query().first(name).orElse("0").replace("us", ""));
    }

    private static void sleep(long microseconds) {
        for (long end = System.nanoTime() + 1000 * microseconds, left; (left = end - System.nanoTime()) > 0; ) {
            LockSupport.parkNanos(left);
        }
    }

    /** Busy by the clock, as a virtual thread has no CPU clock. */
    private static void burn(long microseconds) {
        for (long end = System.nanoTime() + 1000 * microseconds; System.nanoTime() < end; ) {
            Thread.onSpinWait();
        }
    }

    private static void answer(ServerRequest request, ServerResponse response) {
        sleep(numberOf(request, "wait"));
        burn(numberOf(request, "cpu"));
        String stamp = request.path().pathParameters().get("stamp");
        int missing = (int) Math.max(0, numberOf(request, "size") - stamp.length());
        response.header(HeaderNames.CONTENT_TYPE, "text/plain");
        response.send(stamp + "x".repeat(missing));
    }

    private static void sendJson(ServerResponse response, String json) {
        response.header(HeaderNames.CONTENT_TYPE, "application/json");
        response.send(json);
    }

    public static void main(String[] arguments) throws Exception {
        WebServer.builder()
                .address(InetAddress.getByName(arguments[0]))
                .port(Integer.parseInt(arguments[1]))
                .routing(routes -> routes
                        .get("/items", (request, response) -> sendJson(response, ITEMS))
                        .post("/items", (request, response) ->
                                sendJson(response, "" + request.content().as(byte[].class).length))
                        .get("/{stamp}", Main::answer))
                .build()
                .start();
    }
}
