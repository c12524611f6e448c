import io.helidon.http.HeaderNames;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.locks.LockSupport;

/** The workload web by Helidon: a virtual thread for each connection. */
public final class Main {
    private static final String ITEMS =
            "[{\"id\":1,\"name\":\"one\"},{\"id\":2,\"name\":\"two\"},{\"id\":3,\"name\":\"three\"}]";

    private static long numberOf(ServerRequest request, String name) {
        return Long.parseLong(request.query().first(name).orElse("0").replace("us", ""));
    }

    private static void sleepUntil(long end) {
        for (long left; (left = end - System.nanoTime()) > 0; ) {
            LockSupport.parkNanos(left);
        }
    }

    /** Busy by the clock, as a virtual thread has no CPU clock. */
    private static void burn(long microseconds) {
        for (long end = System.nanoTime() + 1000 * microseconds; System.nanoTime() < end; ) {
            Thread.onSpinWait();
        }
    }

    private static String fill(String text, long size) {
        return text + "x".repeat((int) Math.max(0, size - text.length()));
    }

    /** Each chunk leaves when it is due, by a schedule that begins with the request. */
    private static void stream(ServerRequest request, ServerResponse response) {
        long begin = System.nanoTime();
        long chunks = numberOf(request, "chunks");
        long every = 1000 * numberOf(request, "every");
        long size = numberOf(request, "size");
        String stamp = request.path().pathParameters().get("stamp");
        response.header(HeaderNames.CONTENT_TYPE, "text/event-stream");
        try (OutputStream out = response.outputStream()) {
            for (int number = 0; number < chunks; number++) {
                sleepUntil(begin + number * every);
                String data = fill(stamp + String.format("%04d", number), size);
                out.write(("data: " + data + "\n\n").getBytes(StandardCharsets.US_ASCII));
                out.flush();
            }
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }

    private static void answer(ServerRequest request, ServerResponse response) {
        if (numberOf(request, "chunks") > 0) {
            stream(request, response);
            return;
        }
        sleepUntil(System.nanoTime() + 1000 * numberOf(request, "wait"));
        burn(numberOf(request, "cpu"));
        String stamp = request.path().pathParameters().get("stamp");
        response.header(HeaderNames.CONTENT_TYPE, "text/plain");
        response.send(fill(stamp, numberOf(request, "size")));
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
