import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;

/** Gets a URL with HttpURLConnection, as older programs do. */
public class ConnectionGet {
    public static void main(String[] args) throws Exception {
        var connection = (HttpURLConnection) new URL(args[0]).openConnection();
        System.out.println("status " + connection.getResponseCode());
        connection.getHeaderFields().forEach((name, values) -> values.forEach(v -> System.out.println(name + ": " + v)));
        try (InputStream body = connection.getErrorStream() != null ? connection.getErrorStream() : connection.getInputStream()) {
            body.transferTo(System.out);
        }
    }
}
