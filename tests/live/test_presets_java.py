#!/usr/bin/env python3
"""`--preset java`: a first run in an empty home."""

import os

from preset_help import FirstRun
from run_help import both_users, main, needs


@needs("java", "javac")
@both_users
class Java(FirstRun):
    preset = "java"

    def test_javac_java_and_jar(self):
        self.make({"A.java": 'class A { public static void main(String[] a) { System.out.println("A"); } }\n'})
        done = self.first_run("javac A.java; java A; jar cfe a.jar A A.class; java -jar a.jar; java A.java", timeout=150)
        self.assertEqual("A\nA\nA\n", done.out)

    @needs("mvn")
    def test_mvn_offline(self):
        self.make({"pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId>"
                              "<version>1</version><packaging>pom</packaging></project>\n"})
        # The JVM's home directory is the one of /etc/passwd, whatever HOME says.
        self.first_run("mvn -q --offline validate; mvn -q -version", timeout=150,
                       env={"MAVEN_OPTS": f"-Duser.home={self.home}"})
        self.assertTrue(os.path.isdir(os.path.join(self.home, ".m2/repository")))

    @needs("mvn")
    def test_settings_with_passwords_stay_closed(self):
        self.write("home/.m2/settings.xml", "<settings><servers><server><id>s</id><password>secret-token</password></server></servers></settings>\n")
        self.make({"pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId>"
                              "<version>1</version><packaging>pom</packaging></project>\n"})
        done = self.run_report("--preset", "java", "--", "bash", "-c", "cat ~/.m2/settings.xml; cat ~/.m2/settings-security.xml")
        self.assertNotIn("secret-token", done.out)


if __name__ == "__main__":
    main()
