package netdyno;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** The certificate of a server and its key, out of one file in PEM, of which Java reads only parts. */
public final class Certificate {
  private static final char[] NO_PASSWORD = {};

  private Certificate() {}

  /** By it a server speaks TLS, of the JDK's versions and ciphers. Ends the program where it cannot. */
  public static SSLContext load(Options options) {
    try {
      String pem = Files.readString(Path.of(options.tls));
      X509Certificate[] chain = chain(pem);
      KeyStore store = KeyStore.getInstance("PKCS12");
      store.load(null, NO_PASSWORD);
      store.setKeyEntry("server", key(pem, chain[0].getPublicKey().getAlgorithm()), NO_PASSWORD, chain);
      KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      keys.init(store, NO_PASSWORD);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(keys.getKeyManagers(), null, null);
      return context;
    } catch (IOException | GeneralSecurityException | RuntimeException error) {
      Lifecycle.die(1, options.program + ": --tls: " + options.tls + ": " + error);
      return null;
    }
  }

  private static X509Certificate[] chain(String pem) throws GeneralSecurityException {
    CertificateFactory factory = CertificateFactory.getInstance("X.509");
    List<X509Certificate> chain = new ArrayList<>();
    for (byte[] block : blocks(pem, "CERTIFICATE"))
      chain.add((X509Certificate) factory.generateCertificate(new ByteArrayInputStream(block)));
    return chain.toArray(new X509Certificate[0]);
  }

  private static PrivateKey key(String pem, String algorithm) throws GeneralSecurityException {
    byte[] block = blocks(pem, "PRIVATE KEY").get(0);
    return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(block));
  }

  private static List<byte[]> blocks(String pem, String label) {
    String begin = "-----BEGIN " + label + "-----";
    List<byte[]> blocks = new ArrayList<>();
    for (int at = pem.indexOf(begin); at >= 0; at = pem.indexOf(begin, at + 1)) {
      int end = pem.indexOf("-----END " + label + "-----", at);
      blocks.add(Base64.getMimeDecoder().decode(pem.substring(at + begin.length(), end)));
    }
    return blocks;
  }
}
