import java.net.Authenticator;
import java.net.HttpURLConnection;
import java.net.PasswordAuthentication;
import java.net.URL;

/** Gets a URL with HttpURLConnection and a login for the proxy. */
public class LoginGet {
    public static void main(String[] args) throws Exception {
        Authenticator.setDefault(new Authenticator() {
            @Override
            protected PasswordAuthentication getPasswordAuthentication() {
                return new PasswordAuthentication("news", "correct-horse".toCharArray());
            }
        });
        System.out.println("status " + ((HttpURLConnection) new URL(args[0]).openConnection()).getResponseCode());
    }
}
